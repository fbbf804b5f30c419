//! Creates the loop of a worker that its master has greeted, and starts its slots.

use super::fetches::Fetching;
use super::link::MasterLink;
use super::{Agent, SlotThreads, TaskMemory, watch};
use crate::agent::assignment::SlotSetting;
use crate::agent::capture::Capture;
use crate::agent::config::{JobSource, WorkerConfig, WorkerError};
use crate::agent::rejoin::MasterDoor;
use crate::agent::slots;
use crate::agent::started::StartedAttempts;
use crate::agent::work::SlotWork;
use crate::budget::{Budget, KeptInFiles, Shares};
use crate::fault;
use crate::http::limits::STALL_TIME;
use crate::http::{Pool, Timeouts};
use crate::protocol::{Hello, Session};
use crate::recycle::Recycler;
use crate::segment::SpillDirs;
use crate::shuffle::fetch::{self, Fetcher};
use crate::shuffle::store::SegmentStore;
use gristmill_scheduler::ids::WorkerId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Divisor of the machine's memory for the bytes of input files that map outputs of this worker may
/// expect to stay in the page cache. It leaves memory for several workers of a machine and for other
/// programs.
const KEPT_IN_FILES_SHARE: u64 = 8;

/// Maximum bytes of short pairs that stay in input files where all are sent, as copies would be sent
/// again. Beyond that, parts of large files miss the cache and the page tables often enough that a sequential
/// copy is cheaper.
const SENT_SHORT_BYTES_MAX: usize = 1 << 30;

/// State of a worker once its master has greeted it.
pub(in crate::agent) struct JoinedWorker {
    /// Number that the master assigned to it.
    pub worker: WorkerId,
    /// Store that its shuffle server serves.
    pub store: SegmentStore,
    /// Start of its clock.
    pub epoch: Instant,
    /// Sends encoded frames to the master.
    pub frames: UnboundedSender<Vec<u8>>,
    /// Completes when they are written.
    pub written: tokio::task::JoinHandle<()>,
    /// Session that is resumed when the connection is lost.
    pub session: Session,
    /// Introduction that it sent.
    pub hello: Hello,
}

impl Agent {
    pub(in crate::agent) fn new(
        config: WorkerConfig,
        source: Arc<dyn JobSource>,
        joined: JoinedWorker,
    ) -> Result<Self, WorkerError> {
        let JoinedWorker { worker, store, epoch, frames, written, session, hello } = joined;
        let settings = &config.settings;
        let work = SlotWork::new(settings.slots);
        let (events, slot_events) = unbounded_channel();
        let timeouts = Timeouts { stall: fault::span("worker.stall", STALL_TIME), ..Timeouts::default() };
        let pool = Pool::new(timeouts, config.bind.permissions.plaintext());
        let shares = Shares::divide(settings.memory.get() as usize, settings.slots.total());
        let budget = Budget::new(shares.kept_bytes);
        let spill = SpillDirs::with_reserve(config.spill_dirs.clone(), settings.disk_reserve.get());
        let setting = SlotSetting {
            memory: settings.memory,
            budget: budget.clone(),
            spill: spill.clone(),
            store: store.clone(),
            pool: pool.clone(),
            runtime: tokio::runtime::Handle::current(),
            epoch,
            events,
            begun: StartedAttempts::create(spill.first()).map_err(|source| WorkerError::Start { source })?,
            written: config.capture.as_ref().map(Capture::mark),
            memory_peak: Arc::default(),
        };
        slots::start(settings.slots, &work, &setting).map_err(|source| WorkerError::Start { source })?;
        let memory = TaskMemory {
            recycler: Recycler::default(),
            slot_bytes: shares.slot_bytes,
            kept_in_files: KeptInFiles {
                budget: Budget::new((crate::machine_memory_bytes() / KEPT_IN_FILES_SHARE) as usize),
                short_bytes_max: if settings.sends_all() { SENT_SHORT_BYTES_MAX } else { 0 },
            },
        };
        let usual = fetch::timeouts(settings.nic_bytes_per_second);
        let fetch_timeouts = Timeouts { stall: fault::span("worker.stall", usual.stall), ..usual };
        let fetch_pool = Pool::new(fetch_timeouts, config.bind.permissions.plaintext());
        let fetcher =
            Fetcher { pool: fetch_pool, store: store.clone(), budget, spill: spill.clone(), sees: None };
        let door = MasterDoor::from_config(&config);
        Ok(Self {
            fetching: Fetching::new(&config, fetcher),
            config,
            source,
            worker,
            epoch,
            store,
            link: MasterLink::new(frames, session),
            hello,
            door,
            written,
            slots: SlotThreads { work, events: slot_events, setting },
            memory,
            jobs: BTreeMap::new(),
            running: BTreeMap::new(),
            disk_free: watch::DiskFree::new(spill),
            processors: watch::Processors::default(),
            leaving_since: None,
            broken: false,
        })
    }
}
