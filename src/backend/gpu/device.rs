//! Opens a GPU and keeps watch over it: what it offers, and what has gone wrong with it.

use crate::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// Which GPU, where there are several; a wish that the system may overrule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PowerPreference {
    #[default]
    Auto,
    HighPerformance,
    LowPower,
}

/// How a GPU is opened.
#[derive(Debug, Clone, Default)]
pub struct DeviceOptions {
    pub power: PowerPreference,
    /// Take a software adapter even where a real one is present.
    pub software: bool,
    /// In a browser: whether the device is asked for the feature `subgroups` on the way (wgpu does not know
    /// it there). Elsewhere it is asked for where the adapter has it.
    pub subgroups: bool,
    /// Stay within WebGPU's default limits and features, whatever the adapter offers.
    pub default_limits: bool,
}

impl DeviceOptions {
    /// What the system, or the browser, is asked for.
    fn adapter_request(&self) -> wgpu::RequestAdapterOptions<'static, 'static> {
        wgpu::RequestAdapterOptions {
            power_preference: match self.power {
                PowerPreference::Auto => wgpu::PowerPreference::None,
                PowerPreference::HighPerformance => wgpu::PowerPreference::HighPerformance,
                PowerPreference::LowPower => wgpu::PowerPreference::LowPower,
            },
            force_fallback_adapter: self.software,
            ..Default::default()
        }
    }
}

/// An open GPU.
pub struct Device {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub info: wgpu::AdapterInfo,
    /// Most bytes of one storage binding.
    pub binding_bytes: u64,
    pub has_subgroups: bool,
    faults: Arc<Faults>,
}

/// What has gone wrong; the first of each kind counts.
#[derive(Default)]
struct Faults {
    lost: Mutex<Option<String>>,
    failed: Mutex<Option<Error>>,
}

impl Device {
    /// # Errors
    /// `unsupported_browser` when there is no GPU, or none that WebGPU may use.
    pub async fn open(options: &DeviceOptions) -> Result<Self> {
        let instance = wgpu::Instance::default();
        let adapter = instance
            .request_adapter(&options.adapter_request())
            .await
            .map_err(|error| unavailable(&format!("no GPU can be used ({error})")))?;
        let offered = adapter.features();
        let is_browser = cfg!(target_arch = "wasm32");
        let has_subgroups = match is_browser {
            true => options.subgroups,
            false => !options.default_limits && offered.contains(wgpu::Features::SUBGROUP),
        };
        let mut required_limits = wgpu::Limits::default();
        if !options.default_limits {
            let limits = adapter.limits();
            required_limits.max_storage_buffer_binding_size = limits.max_storage_buffer_binding_size;
            required_limits.max_buffer_size = limits.max_buffer_size;
        }
        let required_features = match has_subgroups && !is_browser {
            true => wgpu::Features::SUBGROUP,
            false => wgpu::Features::empty(),
        };
        let (device, queue) = adapter
            .request_device(&wgpu::DeviceDescriptor {
                label: Some("sterna"),
                required_features,
                required_limits: required_limits.clone(),
                ..Default::default()
            })
            .await
            .map_err(|error| unavailable(&format!("the GPU gives no device ({error})")))?;
        let faults = Arc::new(Faults::default());
        let watch = faults.clone();
        device.set_device_lost_callback(move |reason, message| {
            watch.note_loss(format!("the GPU was lost ({reason:?}: {message})"));
        });
        let watch = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error| watch.note_error(&error)));
        Ok(Self {
            info: adapter.get_info(),
            binding_bytes: required_limits.max_storage_buffer_binding_size.min(MOST_BINDING_BYTES),
            has_subgroups,
            device,
            queue,
            faults,
        })
    }

    /// # Errors
    /// `device_lost` or `out_of_memory` once the GPU has reported it; `unsupported_browser` after an error
    /// that the GPU should not give.
    pub fn check(&self) -> Result<()> {
        self.faults.check()
    }

    /// Waits until everything submitted so far is done.
    pub async fn wait(&self) {
        let (done, sender) = signal();
        self.queue.on_submitted_work_done(move || sender.raise());
        self.drive();
        done.await;
    }

    /// Copies `buffer`, which was created for mapping, to the host.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub async fn map(&self, buffer: &wgpu::Buffer, bytes: u64) -> Result<Vec<u8>> {
        let slice = buffer.slice(..bytes);
        let (done, sender) = signal();
        slice.map_async(wgpu::MapMode::Read, move |_| sender.raise());
        self.drive();
        done.await;
        self.check()?;
        let view = slice
            .get_mapped_range()
            .map_err(|error| Error::DeviceLost(format!("the GPU's memory cannot be read ({error})")))?;
        let copy = view.to_vec();
        drop(view);
        buffer.unmap();
        Ok(copy)
    }

    /// Natively nothing is called back unless someone waits for it; in a browser the event loop does.
    fn drive(&self) {
        if let Err(error) = self.device.poll(wgpu::PollType::wait_indefinitely()) {
            self.faults.note_loss(format!("the GPU does not answer ({error})"));
        }
    }
}

/// Larger bindings are not asked for: no matrix of a model that fits a browser gains by them.
const MOST_BINDING_BYTES: u64 = 1 << 30;

impl Faults {
    fn check(&self) -> Result<()> {
        if let Some(message) = &*lock(&self.lost) {
            return Err(Error::DeviceLost(format!(
                "{message}: load the model again, on device \"wasm\" if it happens again"
            )));
        }
        lock(&self.failed).clone().map_or(Ok(()), Err)
    }

    fn note_loss(&self, message: String) {
        lock(&self.lost).get_or_insert(message);
    }

    fn note_error(&self, error: &wgpu::Error) {
        let known = match error {
            wgpu::Error::OutOfMemory { .. } => Error::OutOfMemory(
                "the GPU's memory is full: close other tabs, choose a smaller model or embedding format, or \
                 ask for a shorter contextLength"
                    .into(),
            ),
            other => unavailable(&format!("the GPU refused a command ({other})")),
        };
        lock(&self.failed).get_or_insert(known);
    }
}

/// An error that another device would not give.
pub fn unavailable(what: &str) -> Error {
    Error::UnsupportedBrowser(format!("{what}: use device \"wasm\", or \"auto\" to fall back by itself"))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A future that ends when its sender is raised or dropped.
fn signal() -> (Signal, Sender) {
    let state = Arc::new(Mutex::new(SignalState::default()));
    (Signal(state.clone()), Sender(state))
}

#[derive(Default)]
struct SignalState {
    is_raised: bool,
    waker: Option<std::task::Waker>,
}

struct Signal(Arc<Mutex<SignalState>>);
struct Sender(Arc<Mutex<SignalState>>);

impl Sender {
    /// Dropping does it: a callback that the GPU forgets must not leave anyone waiting.
    fn raise(self) {}
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.is_raised = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl Future for Signal {
    type Output = ();

    fn poll(self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        let mut state = lock(&self.0);
        if state.is_raised {
            return std::task::Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        std::task::Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out_of_memory() -> wgpu::Error {
        wgpu::Error::OutOfMemory { source: "vkAllocateMemory".into() }
    }

    fn invalid() -> wgpu::Error {
        wgpu::Error::Validation { source: "buffer".into(), description: "a buffer is invalid".into() }
    }

    fn request(json: &str) -> wgpu::PowerPreference {
        let power = serde_json::from_str(json).unwrap();
        DeviceOptions { power, ..Default::default() }.adapter_request().power_preference
    }

    #[test]
    fn the_adapter_request_says_what_was_asked_for() {
        assert_eq!(request(r#""auto""#), wgpu::PowerPreference::None);
        assert_eq!(request(r#""high-performance""#), wgpu::PowerPreference::HighPerformance);
        assert_eq!(request(r#""low-power""#), wgpu::PowerPreference::LowPower);
        assert!(serde_json::from_str::<PowerPreference>(r#""fast""#).is_err());
        for software in [false, true] {
            let options = DeviceOptions { software, ..Default::default() };
            assert_eq!(options.adapter_request().force_fallback_adapter, software);
        }
    }

    #[test]
    fn memory_that_is_full_is_reported_with_advice() {
        let faults = Faults::default();
        assert_eq!(faults.check(), Ok(()));
        faults.note_error(&out_of_memory());
        // What could not be made is invalid wherever it is used.
        faults.note_error(&invalid());
        let error = faults.check().unwrap_err();
        assert_eq!(error.code(), "out_of_memory");
        for advice in ["close other tabs", "smaller model", "contextLength"] {
            assert!(error.to_string().contains(advice), "{error}");
        }
    }

    #[test]
    fn a_refused_command_leads_to_another_device() {
        let faults = Faults::default();
        faults.note_error(&invalid());
        let error = faults.check().unwrap_err();
        assert_eq!(error.code(), "unsupported_browser");
        assert!(error.to_string().contains("a buffer is invalid"), "{error}");
    }

    #[test]
    fn a_lost_device_explains_everything_else() {
        let faults = Faults::default();
        faults.note_error(&out_of_memory());
        faults.note_loss("the GPU was lost".into());
        assert_eq!(faults.check().unwrap_err().code(), "device_lost");
    }
}
