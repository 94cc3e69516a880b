//! A run of the protocol among fixed parties: numbered rounds, bound to one session, aborted for good at the first fault.

use synchromesh::plan::Joint;
use synchromesh::rlwe::entropy;
use zeroize::Zeroizing;

use crate::error::{Blame, Error, Result};
use crate::transport::{Fault, Transport};

/// Most parties of a session.
pub const MOST_PARTIES: usize = Joint::MOST_PARTIES;

/// Bytes before the payload of a frame: session, round, sender, kind of message.
pub const HEADER: usize = 32 + 8 + 4 + 4;

/// Bytes of a commitment's opening besides the value.
pub const NONCE: usize = 32;

/// Bytes of the payload of a notice: whom its sender blames.
const NOTICE: usize = 8;

/// Refuses a number of a party, or of parties, that no session has.
///
/// # Errors
/// [`Error::Parties`] unless there are 2 to [`MOST_PARTIES`] and this is one of them.
pub const fn numbered(party: usize, parties: usize) -> Result<()> {
    if 2 <= parties && parties <= MOST_PARTIES && party < parties {
        Ok(())
    } else {
        Err(Error::Parties { party, parties, most: MOST_PARTIES })
    }
}

/// What a message is, so that none can stand for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// The session's hello: what is to be computed.
    Hello = 1,
    /// Shares of values that are opened.
    Opening = 2,
    /// Commitments.
    Commitment = 3,
    /// Values committed to.
    Decommitment = 4,
    /// The hash of everything that was broadcast.
    Agreement = 5,
    /// Shares of decryptions.
    Decryption = 6,
    /// The sender has aborted, in the place of whatever else it would have sent.
    Abort = 7,
    /// What a party's record says of earlier sessions.
    Record = 8,
    /// What one party alone may read.
    Private = 9,
    /// What a party has of a sum, for the one that adds it up.
    Summand = 10,
    /// What it has added up.
    Sum = 11,
}

/// What a party has of sums of all parties' values, in numbered pieces ([`Session::add_up`]).
pub trait Summands {
    /// Appends what this party has of a piece; of one that it adds up what was added too.
    ///
    /// # Errors
    /// When the device fails.
    fn write(&mut self, piece: usize, bytes: &mut Vec<u8>) -> Result<()>;

    /// Adds what another party has of a piece.
    ///
    /// # Errors
    /// Those that blame the sender ([`Error::blames_sender`]) for what is no such piece.
    fn add(&mut self, piece: usize, bytes: &[u8]) -> Result<()>;

    /// Holds the sum of a piece from now on.
    ///
    /// # Errors
    /// As [`Self::add`].
    fn replace(&mut self, piece: usize, sum: &[u8]) -> Result<()>;
}

/// One party's side of a session.
#[derive(Debug)]
pub struct Session<T> {
    transport: T,
    /// Hash of what is to be done, which bears notices: they are understood whatever round either side is in.
    setup: [u8; 32],
    id: [u8; 32],
    round: u64,
    /// Hash of what every party broadcast, in order of rounds and parties.
    transcript: blake3::Hasher,
    phase: String,
    aborted: bool,
    sent: u64,
}

impl<T: Transport> Session<T> {
    /// Begins a session. All parties must give the same description of what they will do; the session's number comes from
    /// it and from a seed of each party, so that no message of another session fits.
    ///
    /// # Errors
    /// [`Error::Parties`] for a number of parties above 64, or of a party that there is not; one alone is none to trust
    /// or to blame. [`Error::Abort`] if a party says something else, which is nobody's
    /// fault as far as anybody knows, or different things to different parties.
    pub fn new(transport: T, description: impl AsRef<[u8]>) -> Result<Self> {
        let (party, parties) = (transport.party(), transport.parties());
        if (party, parties) != (0, 1) {
            numbered(party, parties)?;
        }
        let mut setup = blake3::Hasher::new_derive_key("synchromesh 1 parties, session");
        setup.update(&(parties as u64).to_le_bytes());
        setup.update(description.as_ref());
        let id = *setup.finalize().as_bytes();
        let phase = "the hello".to_owned();
        let mut session =
            Self { transport, setup: id, id, round: 0, transcript: setup, phase, aborted: false, sent: 0 };
        let seeds = session.broadcast(Kind::Hello, &entropy::random_bytes::<32>()?, 32)?;
        // Who was told another seed has another number for the session: that shows here, before frames bear it.
        session.agree()?;
        let mut fresh = blake3::Hasher::new_derive_key("synchromesh 1 parties, session number");
        fresh.update(&id);
        fresh.update(&seeds.concat());
        session.id = *fresh.finalize().as_bytes();
        Ok(session)
    }

    /// Number of this party, from 0.
    #[must_use]
    pub fn party(&self) -> usize {
        self.transport.party()
    }

    /// What the list of all parties calls one of this session's: in errors.
    #[must_use]
    pub fn number(&self, party: usize) -> usize {
        self.transport.number(party)
    }

    /// Parties in all.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.transport.parties()
    }

    /// The session's number, which no other session has.
    #[must_use]
    pub fn id(&self) -> &[u8; 32] {
        &self.id
    }

    /// What happens at present.
    #[must_use]
    pub fn phase(&self) -> &str {
        &self.phase
    }

    /// Rounds so far, and bytes that this party sent.
    #[must_use]
    pub fn traffic(&self) -> (u64, u64) {
        (self.round, self.sent)
    }

    /// Names what happens from now on, for errors.
    pub fn enter(&mut self, phase: &str) {
        phase.clone_into(&mut self.phase);
    }

    /// Sends the same bytes to everyone and returns what each party sent, the own among them, each of exactly `length` bytes.
    /// That everyone got the same is not known before [`agree`](Self::agree).
    ///
    /// # Errors
    /// [`Error::Abort`] with the blame if a party is silent or sends what does not belong here; [`Error::Aborted`] ever after.
    pub fn broadcast(&mut self, kind: Kind, payload: &[u8], length: usize) -> Result<Vec<Vec<u8>>> {
        let mut received = self.round(kind, payload, |_| length)?;
        received.iter_mut().for_each(cut);
        received[self.party()] = payload.to_vec();
        Ok(received)
    }

    /// As [`broadcast`](Self::broadcast) of a message in pieces of these lengths, a round each, and of what the others send of
    /// theirs, pieces of the same lengths: `read` has each with its party and its number as it comes, and none is kept.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and those of `read`.
    pub fn broadcast_in_pieces(
        &mut self,
        kind: Kind,
        message: &[u8],
        lengths: &[usize],
        mut read: impl FnMut(&mut Self, usize, usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for (number, piece) in pieces(message, lengths).enumerate() {
            let frames = self.round(kind, piece, |_| piece.len())?;
            for (party, frame) in self.others(&frames) {
                read(self, party, number, &frame[HEADER..])?;
            }
        }
        Ok(())
    }

    /// The sums of what all parties have, in pieces of these lengths. Piece k is added up by party k mod n: it alone sees what the
    /// others have of it, and tells everybody the sum. What it tells is in the transcript, what it was told is not.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and those of the summands.
    pub fn add_up(&mut self, lengths: &[usize], summands: &mut impl Summands) -> Result<()> {
        let (own, parties) = (self.party(), self.parties());
        let mut sum = Vec::new();
        for first in (0..lengths.len()).step_by(parties) {
            let piece = |party: usize| Some(first + party).filter(|&piece| piece < lengths.len());
            let length = |party: usize| piece(party).map_or(0, |piece| lengths[piece]);
            let frames = self.frames(
                Kind::Summand,
                |_| length(own),
                |peer, frame| {
                    frame.reserve_exact(length(peer));
                    piece(peer).map_or(Ok(()), |piece| summands.write(piece, frame))
                },
            )?;
            sum.clear();
            if let Some(piece) = piece(own) {
                for (party, frame) in self.others(&frames) {
                    let added = summands.add(piece, &frame[HEADER..]);
                    self.blamed(party, added)?;
                }
                summands.write(piece, &mut sum)?;
            }
            drop(frames);
            let frames = self.round(Kind::Sum, &sum, length)?;
            for (party, frame) in self.others(&frames) {
                let Some(piece) = piece(party) else { continue };
                let replaced = summands.replace(piece, &frame[HEADER..]);
                self.blamed(party, replaced)?;
            }
        }
        Ok(())
    }

    /// What was read of a party's message; a message that is none ends the session with the blame.
    pub(crate) fn blamed<R>(&mut self, party: usize, read: Result<R>) -> Result<R> {
        match read {
            Err(error) if error.blames_sender() => {
                let what = if matches!(error, Error::Proof(_)) { "what it did not prove: " } else { "" };
                Err(self.abort(Blame::Party(party), &format!("sent {what}{error}")))
            }
            other => other,
        }
    }

    /// A round in which each tells all the same, of a length for each party: the frames of the others.
    fn round(&mut self, kind: Kind, payload: &[u8], length: impl Fn(usize) -> usize) -> Result<Vec<Vec<u8>>> {
        let (own, header) = (self.party(), self.header(kind, 0));
        let frames = self.frames(kind, length, append(&[payload]))?;
        self.transcript.update(&header);
        for (party, frame) in frames.iter().enumerate() {
            let bytes = if party == own { payload } else { &frame[HEADER..] };
            self.transcript.update(&(bytes.len() as u64).to_le_bytes());
            self.transcript.update(bytes);
        }
        Ok(frames)
    }

    /// A round: a frame to each other party, whose payload is written behind its header, and one from each with a payload of
    /// that party's length, whole; none from this one.
    fn frames(
        &mut self,
        kind: Kind,
        length: impl Fn(usize) -> usize,
        mut write: impl FnMut(usize, &mut Vec<u8>) -> Result<()>,
    ) -> Result<Vec<Vec<u8>>> {
        if self.aborted {
            return Err(Error::Aborted);
        }
        let own = self.party();
        let mut received = vec![Vec::new(); self.parties()];
        for (peer, answered) in received.iter_mut().enumerate().filter(|(peer, _)| *peer != own) {
            let mut frame = self.header(kind, own).to_vec();
            write(peer, &mut frame)?;
            self.sent += frame.len() as u64;
            let answer = self.transport.exchange(peer, frame, HEADER + length(peer).max(NOTICE));
            let answer = answer.map_err(|fault| self.fault(peer, &fault))?;
            self.require(&answer, kind, peer, length(peer))?;
            *answered = answer;
        }
        self.round += 1;
        Ok(received)
    }

    /// What came from others, by party.
    fn others<'f>(&self, frames: &'f [Vec<u8>]) -> impl Iterator<Item = (usize, &'f Vec<u8>)> + use<'f, T> {
        let own = self.party();
        frames.iter().enumerate().filter(move |(party, _)| *party != own)
    }

    /// Checks that all parties are about to do the same, of which this is the hash, before anything else depends on it.
    ///
    /// # Errors
    /// [`Error::Abort`], which blames nobody, if one says something else; as [`broadcast`](Self::broadcast).
    pub fn same(&mut self, what: &str, hash: &[u8; 32]) -> Result<()> {
        let hashes = self.broadcast(Kind::Record, hash, 32)?;
        let other = hashes.iter().position(|other| other[..] != hash[..]);
        self.agree()?;
        let deed = |party| format!("is about to do something else: {what} of party {party} differs");
        other.map_or(Ok(()), |party| Err(self.abort(Blame::Somebody, &deed(self.number(party)))))
    }

    /// Sends each party a frame of its own, which no other sees and no transcript holds, and returns what each sent to this
    /// one: all of exactly `length` bytes.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn scatter(&mut self, payloads: &[Zeroizing<Vec<u8>>], length: usize) -> Result<Zeroizing<Vec<Vec<u8>>>> {
        let payload = |peer: usize| payloads.get(peer).map_or(&[][..], |bytes| &bytes[..]);
        let write = |peer: usize, frame: &mut Vec<u8>| append(&[payload(peer)])(peer, frame);
        let mut received = Zeroizing::new(self.frames(Kind::Private, |_| length, write)?);
        received.iter_mut().for_each(cut);
        received[self.party()] = payload(self.party()).to_vec();
        Ok(received)
    }

    /// Checks that all parties received the same in every broadcast so far.
    ///
    /// # Errors
    /// [`Error::Abort`] if they did not: some party told different things to different parties.
    pub fn agree(&mut self) -> Result<()> {
        let digest = *self.transcript.finalize().as_bytes();
        let digests = self.broadcast(Kind::Agreement, &digest, 32)?;
        if digests.iter().all(|other| other[..] == digest) {
            Ok(())
        } else {
            Err(self.abort(Blame::Somebody, "told different things to different parties"))
        }
    }

    /// Every party's value, all chosen before any is seen: a round of commitments, agreement on them, and one of openings.
    ///
    /// # Errors
    /// [`Error::Abort`] if a party opens something other than it committed to, and as [`broadcast`](Self::broadcast).
    pub fn commit_and_open(&mut self, value: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.commit_then_open(value, || Ok(()))
    }

    /// As [`commit_and_open`](Self::commit_and_open), with something to be done after the commitments and before the own value is
    /// sent; the session ends if it fails.
    ///
    /// # Errors
    /// As [`commit_and_open`](Self::commit_and_open), and what `before` returns.
    pub fn commit_then_open<E: From<Error>>(
        &mut self,
        value: &[u8],
        before: impl FnOnce() -> std::result::Result<(), E>,
    ) -> std::result::Result<Vec<Vec<u8>>, E> {
        let mut values = vec![Vec::new(); self.parties()];
        self.commit_then_read(value, &[value.len()], before, |_, party, _, bytes| {
            values[party] = bytes.to_vec();
            Ok(())
        })?;
        values[self.party()] = value.to_vec();
        Ok(values)
    }

    /// As [`commit_and_open`](Self::commit_and_open) of a value in pieces of these lengths, a round each: `read` has each piece
    /// of the others with its party and its number as it comes, and none is kept. What was read may be believed once this has
    /// returned.
    ///
    /// # Errors
    /// As [`commit_and_open`](Self::commit_and_open), and those of `read`.
    pub fn commit_and_read(
        &mut self,
        value: &[u8],
        lengths: &[usize],
        read: impl FnMut(&mut Self, usize, usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.commit_then_read(value, lengths, || Ok(()), read)
    }

    /// Openings are in no transcript: all agreed on the commitments, and each compares what it is told with those.
    fn commit_then_read<E: From<Error>>(
        &mut self,
        value: &[u8],
        lengths: &[usize],
        before: impl FnOnce() -> std::result::Result<(), E>,
        mut read: impl FnMut(&mut Self, usize, usize, &[u8]) -> Result<()>,
    ) -> std::result::Result<(), E> {
        let nonce = entropy::random_bytes::<NONCE>().map_err(Error::from)?;
        let mut commitment = self.commitment(self.party());
        commitment.update(&nonce).update(value);
        let commitments = self.broadcast(Kind::Commitment, commitment.finalize().as_bytes(), 32)?;
        self.agree()?;
        self.or_leave(before())?;
        let mut opened: Vec<blake3::Hasher> = (0..self.parties()).map(|party| self.commitment(party)).collect();
        for (number, piece) in pieces(value, lengths).enumerate() {
            let front = if number == 0 { &nonce[..] } else { &[] };
            let frames = self.frames(Kind::Decommitment, |_| front.len() + piece.len(), append(&[front, piece]))?;
            for (party, frame) in self.others(&frames) {
                opened[party].update(&frame[HEADER..]);
                read(self, party, number, &frame[HEADER + front.len()..])?;
            }
        }
        let own = self.party();
        let mut pairs = opened.iter().zip(&commitments).enumerate().filter(|(party, _)| *party != own);
        let other = pairs.find(|(_, (opened, commitment))| opened.finalize().as_bytes()[..] != commitment[..]);
        let deed = "opened something other than it committed to";
        other.map_or(Ok(()), |(party, _)| Err(self.abort(Blame::Party(party), deed).into()))
    }

    /// 32 uniform bytes that no party could influence or foresee.
    ///
    /// # Errors
    /// As [`commit_and_open`](Self::commit_and_open).
    pub fn coin(&mut self) -> Result<[u8; 32]> {
        let mut bytes = [0; 32];
        self.coins()?.fill(&mut bytes);
        Ok(bytes)
    }

    /// As many uniform bytes as are read from it, that no party could influence or foresee.
    ///
    /// # Errors
    /// As [`commit_and_open`](Self::commit_and_open).
    pub fn coins(&mut self) -> Result<blake3::OutputReader> {
        let seeds = self.commit_and_open(&entropy::random_bytes::<32>()?)?;
        let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 parties, common randomness");
        hasher.update(&self.id);
        hasher.update(&seeds.concat());
        Ok(hasher.finalize_xof())
    }

    /// What this party has done by itself; if that failed the session ends, and the others need not wait.
    ///
    /// # Errors
    /// Those of `done`.
    pub fn or_leave<R, E>(&mut self, done: std::result::Result<R, E>) -> std::result::Result<R, E> {
        if done.is_err() {
            let own = self.party();
            self.abort(Blame::Missing(vec![own]), "could not go on");
        }
        done
    }

    /// Ends the session in peace; its channels are free for another.
    ///
    /// # Errors
    /// [`Error::Aborted`] if it did not end so.
    pub fn into_transport(self) -> Result<T> {
        if self.aborted { Err(Error::Aborted) } else { Ok(self.transport) }
    }

    /// Ends the session, tells the others whom this party blames, and returns the error that says why, with the numbers of
    /// the list of all parties.
    pub fn abort(&mut self, blame: Blame, deed: &str) -> Error {
        if !self.aborted {
            self.aborted = true;
            let blamed = match blame {
                Blame::Party(party) => party as u64,
                Blame::Missing(_) | Blame::Somebody => u64::MAX,
            };
            let header = self.header_of(&self.setup, Kind::Abort, self.party());
            self.transport.farewell(&[&header[..], &blamed.to_le_bytes()].concat());
        }
        let blame = match blame {
            Blame::Party(party) => Blame::Party(self.number(party)),
            Blame::Missing(parties) => Blame::Missing(parties.into_iter().map(|party| self.number(party)).collect()),
            Blame::Somebody => Blame::Somebody,
        };
        Error::Abort { phase: self.phase.clone(), blame, deed: deed.to_owned() }
    }

    /// The end of the session where no message came. Silence and a channel that is cut may be the network's, or those of an
    /// honest party that has aborted: only a message that is too long is a deed.
    fn fault(&mut self, peer: usize, fault: &Fault) -> Error {
        match fault {
            Fault::TooLong { .. } => self.abort(Blame::Party(peer), &fault.to_string()),
            Fault::Undelivered { received } if self.notice(received, peer).is_some() => self.told(received, peer),
            Fault::Undelivered { .. } | Fault::Disconnected | Fault::TimedOut => {
                self.abort(Blame::Missing(vec![peer]), &fault.to_string())
            }
            // This party itself, not the one that sent what belongs here.
            Fault::NoMemory { .. } => self.abort(Blame::Missing(vec![self.party()]), &fault.to_string()),
        }
    }

    /// Whom a peer blames, if this is its notice that it has aborted.
    fn notice(&self, frame: &[u8], peer: usize) -> Option<u64> {
        let (header, blamed) = frame.split_last_chunk::<NOTICE>()?;
        let mut expected = self.header_of(&self.setup, Kind::Abort, peer);
        // It may be a round ahead or behind.
        expected[32..40].copy_from_slice(header.get(32..40)?);
        (header == expected).then(|| u64::from_le_bytes(*blamed))
    }

    /// The end of the session because a peer says that it has aborted. It may be honest and right, or the cheater.
    fn told(&mut self, frame: &[u8], peer: usize) -> Error {
        let blamed = self.notice(frame, peer).filter(|&party| party < self.parties() as u64);
        let named = |party| format!("blames party {}", self.number(party as usize));
        let (blamed, peer) = (blamed.map_or_else(|| "names nobody".to_owned(), named), self.number(peer));
        self.abort(Blame::Somebody, &format!("cheated or is gone: party {peer} has aborted and {blamed}"))
    }

    fn header(&self, kind: Kind, sender: usize) -> [u8; HEADER] {
        self.header_of(&self.id, kind, sender)
    }

    fn header_of(&self, id: &[u8; 32], kind: Kind, sender: usize) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..32].copy_from_slice(id);
        header[32..40].copy_from_slice(&self.round.to_le_bytes());
        header[40..44].copy_from_slice(&(sender as u32).to_le_bytes());
        header[44..].copy_from_slice(&(kind as u32).to_le_bytes());
        header
    }

    /// Fails unless a frame is what a peer says next, with a payload of this length.
    fn require(&mut self, frame: &[u8], kind: Kind, peer: usize, length: usize) -> Result<()> {
        if self.notice(frame, peer).is_some() {
            return Err(self.told(frame, peer));
        }
        let foreign = frame.get(..HEADER).is_some_and(|header| header != self.header(kind, peer));
        if foreign && kind == Kind::Hello {
            // Either of the two may have been given the wrong plan.
            let peer = self.number(peer);
            let deed = format!("began another session: what party {peer} is about to do, or its version, differs");
            return Err(self.abort(Blame::Somebody, &deed));
        }
        if foreign {
            return Err(self.abort(Blame::Party(peer), "sent a message of another session, round, sender or kind"));
        }
        if frame.len() != HEADER + length {
            let deed = format!("sent {} bytes where {} belong", frame.len(), HEADER + length);
            return Err(self.abort(Blame::Party(peer), &deed));
        }
        Ok(())
    }

    /// What a commitment of a party is the hash of, but for the nonce and the value.
    fn commitment(&self, party: usize) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 parties, commitment");
        hasher.update(&self.id);
        hasher.update(&(party as u64).to_le_bytes());
        hasher
    }
}

/// Writes these bytes, whoever gets them.
fn append<'p>(parts: &'p [&'p [u8]]) -> impl Fn(usize, &mut Vec<u8>) -> Result<()> + use<'p> {
    |_, frame| {
        frame.reserve_exact(parts.iter().map(|part| part.len()).sum());
        parts.iter().for_each(|part| frame.extend_from_slice(part));
        Ok(())
    }
}

/// The payload in the place of a frame: pages of a long one are not taken twice.
fn cut(frame: &mut Vec<u8>) {
    frame.drain(..HEADER.min(frame.len()));
}

/// A message in pieces of these lengths, which are those of all of it.
fn pieces<'m>(mut message: &'m [u8], lengths: &[usize]) -> impl Iterator<Item = &'m [u8]> {
    debug_assert_eq!(lengths.iter().sum::<usize>(), message.len());
    lengths.iter().map(move |&length| {
        let (piece, rest) = message.split_at(length.min(message.len()));
        message = rest;
        piece
    })
}
