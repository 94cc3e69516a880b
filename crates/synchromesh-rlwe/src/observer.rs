//! Who watches what a context computes.

/// Watches a context. Every method has a default: an observer says what it wants and no more.
pub trait Observer: Send + Sync {
    /// Whether ciphertexts carry estimates of their errors ([`crate::noise::Estimates`]) beside their certificates.
    fn wants_estimates(&self) -> bool {
        false
    }
}
