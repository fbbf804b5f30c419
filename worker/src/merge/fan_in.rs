//! Merges whose results are segments: of a map's runs, and of more segments than may be read at once.

use super::tree::{LoserTree, MergeError};
use crate::attempt::{Progress, TaskFailure};
use crate::segment::{KeyBounds, SegmentData, SegmentsWriter, WriteSetting};
use std::sync::Arc;

/// Number of pairs between two checks if the task has to stop.
const CHECK_PAIRS: u64 = 1 << 16;

/// Writes the pairs of all segments, sorted.
pub(crate) fn merge_into(
    segments: Vec<SegmentData>,
    partition: u32,
    writer: &mut SegmentsWriter,
    progress: &Arc<Progress>,
) -> Result<(), TaskFailure> {
    let _engine = progress.engine();
    let mut tree = LoserTree::open(segments)?;
    while tree.advance()? {
        writer.pair(partition, tree.key(), tree.value())?;
        progress.step()?;
    }
    Ok(())
}

/// Limits of segments with buffers that are read at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FanIn {
    /// Maximum number of segments.
    pub segments_max: usize,
    /// Maximum total size of their buffers.
    pub buffers_bytes: usize,
}

/// Merges neighbours until few enough segments need a buffer to be read: those in files, and those with compressed
/// blocks. The others are left unchanged unless they are between. The order of segments, and so of equal keys, is kept.
/// Merged segments have the pairs within the bounds only.
pub(crate) fn limit_fan_in(
    mut segments: Vec<SegmentData>,
    fan_in: FanIn,
    (partition, bounds): (u32, &KeyBounds),
    setting: &WriteSetting,
    progress: &Arc<Progress>,
) -> Result<Vec<SegmentData>, TaskFailure> {
    let buffer = |data: &SegmentData| data.buffer_bytes().map_err(|source| MergeError { map: None, source });
    let mut buffers = segments.iter().map(buffer).collect::<Result<Vec<usize>, _>>()?;
    loop {
        let buffered: Vec<usize> = (0..segments.len()).filter(|at| 0 < buffers[*at]).collect();
        let largest = buffers.iter().copied().max().unwrap_or(0).max(1);
        let fan_in_max = fan_in.segments_max.min(fan_in.buffers_bytes / largest).max(2);
        if buffered.len() <= fan_in_max {
            return Ok(segments);
        }
        // As few as suffice, and among neighbours those with the fewest bytes.
        let count = fan_in_max.min(buffered.len() - fan_in_max + 1);
        let bytes: Vec<usize> = segments
            .iter()
            .scan(0, |sum, data| {
                *sum += data.len();
                Some(*sum)
            })
            .collect();
        let cheapest = buffered.windows(count).min_by_key(|window| {
            let (first, last) = (window[0], window[count - 1]);
            bytes[last] - bytes[first] + segments[first].len()
        });
        let cheapest =
            cheapest.expect("a window exists: it is no longer than the list of those with buffers");
        let range = cheapest[0]..=cheapest[count - 1];
        let at = cheapest[0];
        let chosen: Vec<SegmentData> = segments.drain(range.clone()).collect();
        let merged = merge_to_file(chosen, (partition, bounds), setting, progress)?;
        let merged = Some(merged).filter(|merged| !merged.is_empty());
        buffers.splice(range, merged.as_ref().map(buffer).transpose()?);
        segments.splice(at..at, merged);
    }
}

fn merge_to_file(
    segments: Vec<SegmentData>,
    (partition, bounds): (u32, &KeyBounds),
    setting: &WriteSetting,
    progress: &Arc<Progress>,
) -> Result<SegmentData, TaskFailure> {
    let _engine = progress.engine();
    let mut tree = LoserTree::open_within(segments, bounds)?;
    let mut writer = SegmentsWriter::on_disk(setting.clone())?;
    let mut pairs = 0;
    while tree.advance()? {
        if bounds.until.as_deref().is_some_and(|until| tree.key() >= until) {
            tree.check_unchanged()?;
            break;
        }
        writer.pair(partition, tree.key(), tree.value())?;
        progress.step()?;
        pairs += 1;
        if u64::is_multiple_of(pairs, CHECK_PAIRS) && progress.is_asked() {
            progress.stop_here();
            progress.check()?;
        }
    }
    let merged = writer.finish()?;
    progress.spilled(merged.bytes());
    Ok(merged.segment(partition).expect("the output has the partition it was written for"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{MapOutput, SegmentOrder, SpillCompression, SpillDirs};
    use gristmill_scheduler::ids::JobId;
    use std::sync::atomic::Ordering::Relaxed;

    fn setting(spill: &SpillDirs, map: u32) -> WriteSetting {
        WriteSetting {
            job: JobId(1),
            map,
            epoch: 0,
            partitions: 1,
            order: SegmentOrder::Key,
            spill: spill.clone(),
            compression: SpillCompression::None,
        }
    }

    fn run(spill: &SpillDirs, map: u32) -> MapOutput {
        let mut writer = SegmentsWriter::on_disk(setting(spill, map)).unwrap();
        for number in 0..1000u32 {
            writer.pair(0, &number.to_be_bytes(), b"").unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn merges_read_few_segments_at_once_whose_blocks_are_long() {
        let dir = tempfile::tempdir().unwrap();
        let spill = SpillDirs::new(vec![dir.path().to_owned()]);
        let runs: Vec<MapOutput> = (0..8)
            .map(|map| {
                let mut writer = SegmentsWriter::on_disk(setting(&spill, map)).unwrap();
                writer.pair(0, &map.to_be_bytes(), &vec![7; 300 << 10]).unwrap();
                writer.finish().unwrap()
            })
            .collect();
        let segments = || runs.iter().map(|run| run.segment(0).unwrap()).collect::<Vec<_>>();
        let progress = Arc::new(Progress::default());
        let all = KeyBounds::default();
        let left = |buffers_bytes| {
            let fan_in = FanIn { segments_max: 256, buffers_bytes };
            let left = limit_fan_in(segments(), fan_in, (0, &all), &setting(&spill, 9), &progress).unwrap();
            let mut tree = LoserTree::open(left.clone()).unwrap();
            for map in 0..8_u32 {
                assert!(tree.advance().unwrap() && *tree.key() == map.to_be_bytes());
            }
            left.len()
        };
        assert_eq!((left(8 << 20), left(2 << 20), left(1)), (8, 3, 2));
    }

    #[test]
    fn merges_show_that_they_move_and_end_when_they_are_cancelled() {
        let dir = tempfile::tempdir().unwrap();
        let spill = SpillDirs::new(vec![dir.path().to_owned()]);
        let runs = [run(&spill, 0), run(&spill, 1), run(&spill, 2)];
        let segments = || runs.iter().map(|run| run.segment(0).unwrap()).collect::<Vec<_>>();
        let progress = Arc::new(Progress::default());
        let mut writer = SegmentsWriter::on_disk(setting(&spill, 3)).unwrap();
        merge_into(segments(), 0, &mut writer, &progress).unwrap();
        assert!(3000 <= progress.steps.load(Relaxed));
        assert!(!progress.is_in_engine(), "what comes next may be user code");
        let all = KeyBounds::default();
        let two = FanIn { segments_max: 2, buffers_bytes: usize::MAX };
        limit_fan_in(segments(), two, (0, &all), &setting(&spill, 3), &progress).unwrap();
        assert!(5000 <= progress.steps.load(Relaxed), "two of the three were merged");

        progress.cancel();
        let mut writer = SegmentsWriter::on_disk(setting(&spill, 4)).unwrap();
        let failure = merge_into(segments(), 0, &mut writer, &progress).unwrap_err();
        assert!(matches!(failure, TaskFailure::Cancelled), "{failure}");
        let failure = limit_fan_in(segments(), two, (0, &all), &setting(&spill, 4), &progress).unwrap_err();
        assert!(matches!(failure, TaskFailure::Cancelled), "{failure}");
    }
}
