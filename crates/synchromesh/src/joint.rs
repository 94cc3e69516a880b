//! A key that several parties hold together, as its plan says it: who decrypts, how often, and how well what they show is hidden.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::opening::{Hiding, LEAST_SECURITY};

/// Who decrypts, how often, and how well what they show is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joint {
    /// How many parties hold the key.
    pub parties: usize,
    /// How many of them decrypt: all, or 2 or more.
    pub threshold: usize,
    /// Statistical security in bits, 30 or more: decryptions show the key as little as that many bits allow.
    pub security: u32,
    /// Decryptions under the key, at most.
    pub decryptions: u64,
    /// How many parties made the key, where others hold it now: certificates depend on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub makers: Option<usize>,
    /// Whether each party proves its share of every key, and of what is decrypted for all: nobody has to be trusted then to
    /// follow these protocols. Certificates, and the room that a decryption takes, are for the worst that proofs let through.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proofs: bool,
}

impl Joint {
    /// Most parties that hold one key.
    pub const MOST_PARTIES: usize = 64;

    /// Most bits of statistical security.
    pub const MOST_SECURITY: u32 = 256;

    /// All of so many parties decrypt, with 128 bits and up to 2^20 decryptions.
    #[must_use]
    pub const fn all_of(parties: usize) -> Self {
        Self { parties, threshold: parties, security: 128, decryptions: 1 << 20, makers: None, proofs: false }
    }

    /// Any `threshold` of so many parties decrypt, with 128 bits and up to 2^20 decryptions.
    #[must_use]
    pub const fn any_of(threshold: usize, parties: usize) -> Self {
        Self { threshold, ..Self::all_of(parties) }
    }

    /// The same with another statistical security.
    #[must_use]
    pub const fn with_security(self, security: u32) -> Self {
        Self { security, ..self }
    }

    /// The same with another number of decryptions.
    #[must_use]
    pub const fn with_decryptions(self, decryptions: u64) -> Self {
        Self { decryptions, ..self }
    }

    /// The same key once others hold it: any `threshold` of so many, which may be all.
    #[must_use]
    pub const fn held_by(self, threshold: usize, parties: usize) -> Self {
        Self { parties, threshold, makers: Some(self.makers()), ..self }
    }

    /// How many parties made the key.
    #[must_use]
    pub const fn makers(&self) -> usize {
        match self.makers {
            Some(makers) => makers,
            None => self.parties,
        }
    }

    /// The same with a proof of each share of the keys.
    #[must_use]
    pub const fn with_proofs(self) -> Self {
        Self { proofs: true, ..self }
    }

    /// The same parameters for such a key: certificates then hold for it.
    #[must_use]
    pub fn params(&self, params: synchromesh_rlwe::Params) -> synchromesh_rlwe::Params {
        match self.proofs {
            true => params.with_proven_parties(self.secrets().len()),
            false => params.with_parties(self.makers()),
        }
    }

    /// Of each secret that the key is the sum of, the members who know it, first the one who draws it: all makers draw as
    /// many, those of the first maker come first.
    ///
    /// One member knows each, but where any t of n decrypt with proofs: n + 1 - t members then. Of any t members one knows each
    /// secret, and to t - 1 one is unknown (replicated secret sharing: Ito, Saito, Nishizeki 1987).
    #[must_use]
    pub fn secrets(&self) -> Vec<Vec<usize>> {
        let (n, t) = (self.parties, self.threshold);
        if !self.proofs || t >= n || t == 0 || choices(n, t - 1) > Self::MOST_PARTIES {
            return (0..self.makers()).map(|maker| vec![maker]).collect();
        }
        let patterns = patterns(n, n + 1 - t);
        let turned = |maker| patterns.iter().map(move |of| of.iter().map(|member| (member + maker) % n).collect());
        (0..n).flat_map(turned).collect()
    }

    /// Whether each party holds a share by itself, and not a point of a polynomial.
    #[must_use]
    pub const fn is_additive(&self) -> bool {
        self.threshold == self.parties
    }

    /// Fails for numbers that no joint key has.
    ///
    /// # Errors
    /// [`Error::Request`] with the rule.
    pub fn check(&self) -> Result<()> {
        let Self { parties, threshold, security, decryptions, proofs, .. } = *self;
        let refused = |rule: String| Err(Error::request(rule));
        for count in [parties, self.makers()] {
            if count == 0 || count > Self::MOST_PARTIES {
                return refused(format!("{count} parties: there must be 1 to {}", Self::MOST_PARTIES));
            }
        }
        if threshold > parties || (threshold < 2 && parties > 1) || threshold == 0 {
            return refused(format!("{threshold} of {parties} parties cannot decrypt; it takes 2 to {parties}"));
        }
        let secrets = if proofs { choices(parties, threshold - 1).max(self.secrets().len()) } else { 1 };
        if threshold < parties && secrets > Self::MOST_PARTIES {
            return refused(format!(
                "proofs, and {threshold} of {parties} parties decrypt: that takes {secrets} secrets, each known to {} of them, \
                 and {} are the most; let all {parties} decrypt or fewer hold the key, or trust them to follow the protocol, \
                 without proofs",
                parties + 1 - threshold,
                Self::MOST_PARTIES
            ));
        }
        if proofs && self.makers.is_some() {
            return refused(
                "proofs, and other holders than those who made the key: nobody has a proof of their shares".to_owned(),
            );
        }
        if !(LEAST_SECURITY..=Self::MOST_SECURITY).contains(&security) || decryptions == 0 {
            return refused(format!(
                "s = {security} and {decryptions} decryptions; it takes s of {LEAST_SECURITY} or more, at most {}, and a \
                 decryption",
                Self::MOST_SECURITY
            ));
        }
        Ok(())
    }

    /// What noise has to hide where so many of the parties decrypt, with this precision of CKKS.
    #[must_use]
    pub const fn hiding(&self, present: usize, precision: f64) -> Hiding {
        let Self { security, decryptions, proofs: proven, .. } = *self;
        Hiding { parties: present, security, decryptions, precision, encrypted: false, proven }
    }

    /// What the widest noise has to hide: that of all parties, encrypted for a receiver, and twice as wide for shares.
    pub(crate) const fn widest(&self) -> Hiding {
        Hiding { encrypted: true, security: self.security + 2, ..self.hiding(self.parties, f64::MIN) }
    }
}

/// In how many ways so many of `n` parties, at most 64, are chosen.
fn choices(n: usize, chosen: usize) -> usize {
    (0..chosen.min(n - chosen)).fold(1u128, |ways, i| ways * (n - i) as u128 / (i + 1) as u128) as usize
}

/// The choices of so many members that have member 0, one of all that are the same but for whom numbering begins with.
fn patterns(parties: usize, members: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![0]];
    for length in 1..members {
        // As many more have to follow.
        let last = parties + length - members;
        let longer = |list: Vec<usize>| {
            let from = list.last().map_or(0, |last| last + 1);
            (from..=last).map(move |next| list.iter().copied().chain([next]).collect())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    let from = |list: &[usize], first: usize| {
        let mut turned: Vec<usize> = list.iter().map(|member| (member + parties - first) % parties).collect();
        turned.sort_unstable();
        turned
    };
    all.retain(|list| list.iter().all(|&first| *list <= from(list, first)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All choices of so many of these.
    fn subsets(of: &[usize], count: usize) -> Vec<Vec<usize>> {
        match (of.split_first(), count) {
            (_, 0) => vec![Vec::new()],
            (None, _) => Vec::new(),
            (Some((first, rest)), _) => {
                let with = subsets(rest, count - 1).into_iter().map(|list| [&[*first], &list[..]].concat());
                with.chain(subsets(rest, count)).collect()
            }
        }
    }

    #[test]
    fn t_members_know_all_secrets_and_fewer_do_not() {
        let mut seen = 0;
        for (n, t) in (3..=11).flat_map(|n| (2..n).map(move |t| (n, t))).chain([(64, 2), (32, 2)]) {
            let plan = Joint::any_of(t, n).with_proofs();
            if plan.check().is_err() {
                assert!(choices(n, t - 1) > 56, "{t} of {n}");
                continue;
            }
            seen += 1;
            let secrets = plan.secrets();
            assert!(
                secrets.len() <= Joint::MOST_PARTIES && secrets.len().is_multiple_of(n),
                "{t} of {n}: {}",
                secrets.len()
            );
            let each = secrets.len() / n;
            for (number, members) in secrets.iter().enumerate() {
                assert!(members.len() == n + 1 - t && members[0] == number / each, "{t} of {n}: {members:?}");
            }
            let members: Vec<usize> = (0..n).collect();
            for (count, all) in [(t - 1, false), (t, true)] {
                for some in subsets(&members, count) {
                    let known = |of: &Vec<usize>| of.iter().any(|member| some.contains(member));
                    assert_eq!(secrets.iter().all(known), all, "{t} of {n}: {some:?}");
                }
            }
        }
        assert!(seen > 20, "{seen}");
        assert_eq!(Joint::any_of(2, 3).with_proofs().secrets(), [[0, 1], [1, 2], [2, 0]]);
        assert_eq!(Joint::any_of(2, 3).secrets(), [[0], [1], [2]]);
    }

    #[test]
    fn too_many_secrets_are_refused_with_their_number() {
        let refused = Joint::any_of(32, 64).with_proofs().check().unwrap_err().to_string();
        assert!(refused.contains("1777090076065542336 secrets") && refused.contains("let all 64 decrypt"), "{refused}");
        assert!(Joint::any_of(32, 64).check().is_ok() && Joint::all_of(64).with_proofs().check().is_ok());
    }
}
