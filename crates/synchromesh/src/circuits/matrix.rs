//! Products of encrypted matrices: C = sum_k phi^k(sigma(A)) * psi^k(tau(B)), slot by slot (Jiang, Kim, Lauter and Song,
//! ePrint 2018/1041; ePrint 2023/593).
//!
//! [`MatrixPacking`] says where blocks lie in slots, [`MatrixPlan`] how matrices of any shape are cut into blocks, and
//! [`MatrixChoices`] how many keys and how much memory a product takes. A product of products is one more
//! map of slots away, [`MatrixPlan::chain`].

mod arithmetic;
mod dense;
mod multiply;
mod packing;
mod plan;
mod slicing;

pub(crate) use arithmetic::require_mask;
pub use arithmetic::{Levels, Mask, MatrixArithmetic};
pub use dense::Matrix;
pub use multiply::MatrixChoices;
pub use packing::{MatrixPacking, Side};
pub use plan::MatrixPlan;
pub use slicing::Slicing;
