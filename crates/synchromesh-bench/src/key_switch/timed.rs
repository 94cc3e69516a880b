//! A key switch on some device, made once and run as often as it is timed.

use synchromesh::cost::{OneSwitch, Shape};
use synchromesh_ring::{Backend, Cpu};

use super::Prepared;
use crate::Error;
use crate::device::Device;

/// A key switch on some device, ready to be timed.
pub trait Timed {
    /// Switches the batch, and waits until it is done.
    ///
    /// # Errors
    /// When the device fails.
    fn run(&mut self) -> Result<(), Error>;

    /// The same key and primes with other operands.
    ///
    /// # Errors
    /// When the device fails, or lacks the memory.
    fn shaped(self: Box<Self>, shape: Shape) -> Result<Box<dyn Timed>, Error>;

    /// The device's name.
    fn device(&self) -> String;

    /// Launches of one run, where there are launches.
    fn launches(&self) -> Option<usize>;

    /// Median seconds of one run by the device's own clock, where it has one.
    ///
    /// # Errors
    /// When the device fails.
    fn device_seconds(&self) -> Result<Option<f64>, Error>;
}

impl Timed for OneSwitch<Cpu> {
    fn run(&mut self) -> Result<(), Error> {
        Ok(Self::run(self)?)
    }

    fn shaped(self: Box<Self>, shape: Shape) -> Result<Box<dyn Timed>, Error> {
        Ok(Box::new(self.with_shape(shape)?))
    }

    fn device(&self) -> String {
        self.context().backend().name()
    }

    fn launches(&self) -> Option<usize> {
        None
    }

    fn device_seconds(&self) -> Result<Option<f64>, Error> {
        Ok(None)
    }
}

impl Prepared {
    /// A key switch ready to run. On a card and its emulator the batch is one launch for each step, replayed as a graph.
    ///
    /// # Errors
    /// A device that cannot be had, and memory that is short.
    pub fn open(&self, device: Device) -> Result<Box<dyn Timed>, Error> {
        match device {
            Device::Cpu => Ok(Box::new(self.on_cpu()?)),
            #[cfg(feature = "cuda")]
            Device::Cuda => launched::open::<synchromesh_cuda::Driver>(self),
            #[cfg(feature = "emulated")]
            Device::Emulated => launched::open::<synchromesh_cuda::Emulated>(self),
        }
    }
}

#[cfg(any(feature = "cuda", feature = "emulated"))]
mod launched {
    //! Key switches as recorded launches.

    use std::sync::Arc;

    use synchromesh_cuda::{Cuda, Device, First, Recording, Stages, Transforms};
    use synchromesh_ring::Backend;
    use synchromesh_ring::backend::Open;
    use synchromesh_rlwe::Context;
    use synchromesh_rlwe::domain::MixedPoly;

    use super::{Error, OneSwitch, Prepared, Shape, Timed};
    use crate::device::REPEATS;

    type Parts<D> = [MixedPoly<Cuda<D>>; 2];

    /// A key switch with its batch recorded.
    struct Launched<D: Device> {
        recording: Recording<D, Parts<D>>,
        switch: Arc<OneSwitch<Cuda<D>>>,
    }

    pub(super) fn open<D: First>(prepared: &Prepared) -> Result<Box<dyn Timed>, Error> {
        let mut backend = <Cuda<D> as Open>::open(prepared.params().ring())?;
        if prepared.is_unfused() {
            backend = backend.with_stages(Stages::Primitive).with_transforms(Transforms::TwoPasses);
        }
        let context = Context::with_backend(prepared.params().clone(), backend);
        record(OneSwitch::new(&context, prepared.plan(), prepared.ends().each_ref(), prepared.shape())?)
    }

    fn record<D: Device>(switch: OneSwitch<Cuda<D>>) -> Result<Box<dyn Timed>, Error> {
        let switch = Arc::new(switch);
        let run = Arc::clone(&switch);
        let record = switch.context().backend().record(switch.batch(), move |i| run.run_one(i).map_err(Error::from));
        Ok(Box::new(Launched { recording: record?, switch }))
    }

    impl<D: Device> Timed for Launched<D> {
        fn run(&mut self) -> Result<(), Error> {
            self.recording.replay()?;
            Ok(self.recording.wait()?)
        }

        fn shaped(self: Box<Self>, shape: Shape) -> Result<Box<dyn Timed>, Error> {
            let Self { recording, switch } = *self;
            drop(recording);
            let switch = Arc::into_inner(switch).ok_or_else(|| Error::Request {
                reason: "a key switch is in use elsewhere while its shape changes".to_owned(),
            })?;
            record(switch.with_shape(shape)?)
        }

        fn device(&self) -> String {
            self.switch.context().backend().name()
        }

        fn launches(&self) -> Option<usize> {
            Some(self.recording.launches())
        }

        fn device_seconds(&self) -> Result<Option<f64>, Error> {
            Ok(Some(self.recording.seconds(REPEATS)?))
        }
    }
}
