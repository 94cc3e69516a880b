//! What a refresh will be like, by running it without data: its certificate, levels, keys, memory and time.

use std::sync::Arc;

use serde::Serialize;
use synchromesh_rlwe::Randomness;

use crate::ckks::Context;
use crate::ckks::bootstrap::{Bootstrap, Bootstrapper, Stage};
use crate::cost::{self, Profile};
use crate::error::Result;
use crate::plan::Node;
use crate::plan::refreshing::KeyForecast;
use crate::plan::trace::{Trace, Traced};
use crate::rotations::Rotations;

/// What a refresh will be like.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RefreshForecast {
    /// The stages, in their order.
    pub stages: Vec<StageForecast>,
    /// The certificate of a fresh message of the planned bound that is refreshed: no slot is off by more.
    pub error_bound: f64,
    /// log2 of the message bound over that.
    pub precision_bits: f64,
    /// Levels between two refreshes.
    pub usable_levels: usize,
    /// log2 of what their primes multiply to.
    pub usable_bits: f64,
    /// log2 of the largest modulus of a key.
    pub log_qp: u32,
    /// The least security of all keys, in bits.
    pub security_bits: f64,
    /// Switch keys, those of the sparse secret included.
    pub keys: usize,
    /// Bytes of their file.
    pub key_bytes: u64,
    /// Bytes of them as they are computed with.
    pub prepared_bytes: u64,
    /// Bytes of the public vectors.
    pub vector_bytes: u64,
    /// The most bytes of buffers that there are at once, keys and vectors included.
    pub peak_bytes: u64,
    /// Bytes of the keys as they are stored: what of [`Self::peak_bytes`] is gone once only their prepared forms are kept
    /// ([`synchromesh_rlwe::EvaluationKeys::into_prepared`]), but for the few of the key under the sparse secret.
    pub stored_bytes: u64,
    /// Products modulo primes of a refresh, about: those of its transforms, base conversions and inner products.
    pub multiplications: f64,
    /// Predicted seconds of a refresh; none without a machine profile.
    pub seconds: Option<f64>,
}

/// What a stage will be like.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StageForecast {
    /// Which.
    pub stage: Stage,
    /// The level of what it makes.
    pub level: usize,
    /// The ciphertexts that it makes, in their order.
    pub nodes: Vec<Node>,
    /// Predicted seconds; none without a machine profile.
    pub seconds: Option<f64>,
}

impl Bootstrap {
    /// Runs a refresh without data; with a profile it is told how long it takes on that machine.
    ///
    /// # Errors
    /// As [`Bootstrapper::new`] and [`Bootstrapper::refresh`], where the parameters do not serve; [`Profile::seconds`].
    pub fn forecast(&self, profile: Option<&Profile>) -> Result<RefreshForecast> {
        let params = self.params().clone();
        let device = cost::recorder(params.rlwe());
        let trace = Trace::of_refreshes(device.reader());
        let context = Context::observed(params.clone(), device, Some(Trace::observer(&trace)))?;
        let mut randomness = Randomness::insecure_from_number(0);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let keys = Arc::new(self.generate_keys(&context, &secret, &Rotations::default(), &mut randomness)?);
        let (count, key_bytes) =
            (keys.iter().len() + keys.sparse().map_or(0, |sparse| sparse.iter().len()), keys.wire_bytes(params.rlwe()));
        let bootstrapper = Bootstrapper::new(&context, self.clone(), Arc::clone(&keys))?;
        let message = context.encode_bounded(&[], self.literal().message_bound)?;
        let fresh = context.encrypt_at(&public, &message, self.output_level(), &mut randomness)?;
        // Once, so that keys are prepared; this is not what every refresh takes.
        bootstrapper.refresh(&fresh)?;
        trace.restart();
        let mut stages: Vec<(Stage, Traced)> = Vec::new();
        // A stage of several rounds is what all of them make.
        let refreshed = bootstrapper.refresh_watched(&fresh, |stage, _| {
            let traced = trace.take();
            match stages.iter_mut().find(|(known, _)| *known == stage) {
                Some((_, all)) => all.append(traced),
                None => stages.push((stage, traced)),
            }
        })?;
        let multiplications = stages.iter().map(|(_, traced)| traced.multiplications(params.log_n())).sum();
        let peak_bytes = stages.iter().flat_map(|(_, traced)| &traced.nodes).map(|node| node.bytes).max();
        let tables = cost::table_bytes(params.rlwe(), &params.rlwe().keyed().union(params.rlwe().aux()));
        let stages = stages.into_iter().map(|(stage, mut traced)| {
            if let Some(profile) = profile {
                traced.predict(profile, params.log_n(), tables)?;
            }
            let seconds = profile.map(|_| traced.nodes.iter().filter_map(|node| node.predicted_ms).sum::<f64>() / 1e3);
            let level = traced.nodes.last().map_or(0, |node| node.level);
            Ok(StageForecast { stage, level, nodes: traced.nodes, seconds })
        });
        let stages = stages.collect::<Result<Vec<_>>>()?;
        let error_bound = context.error_bound(&refreshed);
        let modulus = |level: usize| -> Result<f64> { Ok(params.rlwe().ring().log2(params.rlwe().level(level)?)) };
        Ok(RefreshForecast {
            error_bound,
            precision_bits: (self.literal().message_bound / error_bound).log2(),
            usable_levels: self.usable_levels(),
            usable_bits: modulus(self.output_level())? - modulus(self.input_level())?,
            log_qp: params.rlwe().log_qp(),
            security_bits: params.rlwe().security_bits(),
            keys: count,
            key_bytes,
            prepared_bytes: keys.prepared_bytes(),
            vector_bytes: bootstrapper.bytes() as u64,
            peak_bytes: peak_bytes.unwrap_or(0),
            stored_bytes: KeyForecast::of(&keys, params.rlwe()).held,
            multiplications,
            seconds: profile.map(|_| stages.iter().filter_map(|stage| stage.seconds).sum()),
            stages,
        })
    }
}
