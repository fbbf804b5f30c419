//! Command lines from courses, blogs and scripts, with old and new options, typed into a shell where
//! `hadoop`, `hdfs`, `yarn` and `mapred` are this program. Each gives the result of Hadoop, or is refused as
//! Hadoop refuses it or with a reason.

use super::hadoop::install;
use crate::support::Sandbox;
use crate::support::oracle;
use std::fs;
use std::path::Path;

/// Expected result of a line.
enum Comes {
    /// Code 0, and the lines of the output in byte order, trimmed.
    To(&'static str),
    /// This code, and these words on stderr.
    Refused(i32, &'static str),
}

use Comes::{Refused, To};

const TEXT: &str = "the mill grinds\nthe corn\n";
const COUNTS: &str = "corn\t1|grinds\t1|mill\t1|the\t2";
const WORDS: &str = "corn|grinds|mill|the|the";

/// `$JAR` is the jar of Hadoop Streaming; `out` is the output. `input/text` and `logs/*` exist. `mapper.sh`,
/// `reducer.sh`, `combiner.sh`, `tags.sh`, `lookup.txt` and `lib.tar` are in the working directory.
const LINES: &[(&str, Comes)] = &[
    // The oldest tutorials.
    (
        "hadoop jar $JAR -input input -output out -mapper /bin/cat -reducer /usr/bin/wc",
        To("2       5      27"),
    ),
    (
        "hadoop jar $JAR -mapper mapper.sh -reducer reducer.sh -file mapper.sh -file reducer.sh -input input/* -output out",
        To(COUNTS),
    ),
    (
        "hadoop jar $JAR -file ./mapper.sh -mapper ./mapper.sh -file ./reducer.sh -reducer ./reducer.sh -input input/text -output out",
        To(COUNTS),
    ),
    (
        "hadoop jar $JAR -file $PWD/mapper.sh -mapper 'sh mapper.sh' -file $PWD/reducer.sh -reducer 'sh reducer.sh' -input /user/me/input -output /user/me/out",
        To(COUNTS),
    ),
    (
        "hadoop jar $JAR -D mapred.reduce.tasks=2 -D mapred.job.name='word count' -D mapred.job.priority=VERY_HIGH -input input -output out -mapper mapper.sh -combiner combiner.sh -reducer reducer.sh -file mapper.sh -file combiner.sh -file reducer.sh",
        To(COUNTS),
    ),
    (
        "hadoop jar $JAR -jobconf mapred.reduce.tasks=3 -jobconf mapred.map.tasks=4 -input input -output out -mapper mapper.sh -reducer reducer.sh -file mapper.sh -file reducer.sh",
        To(COUNTS),
    ),
    ("hadoop jar $JAR -input input -output out -mapper mapper.sh -reducer NONE -file mapper.sh", To(WORDS)),
    (
        "hadoop jar $JAR -input input -output out -mapper mapper.sh -jobconf mapred.reduce.tasks=0 -file mapper.sh",
        To(WORDS),
    ),
    (
        "hadoop jar $JAR -input input -output out -mapper org.apache.hadoop.mapred.lib.IdentityMapper -reducer '/usr/bin/wc -l'",
        To("2"),
    ),
    (
        "hadoop jar $JAR -input input -output out -mapper cat -reducer org.apache.hadoop.mapred.lib.IdentityReducer",
        To("the corn|the mill grinds"),
    ),
    ("hadoop jar $JAR -input input -output out -mapper \"awk '{ print \\$1 }'\" -reducer uniq", To("the")),
    ("hadoop jar $JAR -input input -output out -mapper 'cut -d\" \" -f2' -reducer cat", To("corn|mill")),
    (
        "hadoop jar $JAR -input input -output out -mapper cat -reducer aggregate",
        Refused(3, "`awk` sums values"),
    ),
    // Newer ones.
    (
        "yarn jar $JAR -files mapper.sh,reducer.sh -mapper mapper.sh -reducer reducer.sh -input input -output out",
        To(COUNTS),
    ),
    (
        "mapred streaming -files mapper.sh,reducer.sh -D mapreduce.job.reduces=2 -input input -output out -mapper mapper.sh -reducer reducer.sh",
        To(COUNTS),
    ),
    (
        "hadoop jar $JAR -D mapreduce.job.name=count -D mapreduce.job.maps=3 -files mapper.sh#m,reducer.sh#r -mapper 'sh m' -reducer 'sh r' -input input -output out -numReduceTasks 1",
        To(COUNTS),
    ),
    ("hadoop jar $JAR streamjob -input input -output out -mapper cat", To("the corn|the mill grinds")),
    (
        "hadoop jar $JAR -D stream.map.output.field.separator=. -D stream.num.map.output.key.fields=2 -D map.output.key.field.separator=. -D mapred.text.key.partitioner.options=-k1,1 -input logs -output out -mapper cat -reducer cat -partitioner org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner -numReduceTasks 2",
        To("a.1\t9|a.2\t8|b.10\t7"),
    ),
    (
        "hadoop jar $JAR -D mapreduce.job.output.key.comparator.class=org.apache.hadoop.mapreduce.lib.partition.KeyFieldBasedComparator -D stream.map.output.field.separator=. -D stream.num.map.output.key.fields=3 -D mapreduce.map.output.key.field.separator=. -D mapreduce.partition.keycomparator.options=-k2,2nr -input logs -output out -mapper cat -reducer 'head -1'",
        To("b.10.7"),
    ),
    (
        "hadoop jar $JAR -D mapred.output.key.comparator.class=org.apache.hadoop.mapred.lib.KeyFieldBasedComparator -D mapred.text.key.comparator.options=-n -D stream.num.map.output.key.fields=1 -input numbers -output out -mapper cat -reducer 'sed -n 2p'",
        To("9"),
    ),
    (
        "hadoop jar $JAR -D num.key.fields.for.partition=1 -D stream.num.map.output.key.fields=2 -partitioner org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner -input logs -output out -mapper 'tr . \\t' -reducer cat -numReduceTasks 3",
        To("a\t1\t9|a\t2\t8|b\t10\t7"),
    ),
    (
        "hadoop jar $JAR -cmdenv TAG=x -input input -output out -mapper 'sh tags.sh' -file tags.sh -numReduceTasks 0",
        To("x the corn|x the mill grinds"),
    ),
    (
        "hadoop jar $JAR -cacheFile hdfs:///user/me/lookup.txt#known -input input -output out -mapper 'grep -o -f known' -reducer 'uniq -c'",
        To("1 corn|1 mill"),
    ),
    (
        "hadoop jar $JAR -files hdfs://namenode:9000/user/me/lookup.txt#known -input input -output out -mapper 'grep -o -f known' -reducer 'uniq -c'",
        To("1 corn|1 mill"),
    ),
    (
        "hadoop jar $JAR -archives lib.tar#lib -input input -output out -mapper 'sh lib/mapper.sh' -reducer uniq",
        To("corn|grinds|mill|the"),
    ),
    (
        "hadoop jar $JAR -cacheArchive hdfs:///user/me/lib.tar#lib -input input -output out -mapper 'sh lib/mapper.sh' -reducer uniq",
        To("corn|grinds|mill|the"),
    ),
    (
        "hadoop jar $JAR -inputformat org.apache.hadoop.mapred.lib.NLineInputFormat -D mapred.line.input.format.linespermap=1 -input input -output out -mapper 'cut -f2' -numReduceTasks 0",
        To("the corn|the mill grinds"),
    ),
    (
        "hadoop jar $JAR -inputformat KeyValueTextInputFormat -input pairs -output out -mapper 'cut -f2' -reducer cat",
        To("1|2"),
    ),
    (
        "hadoop jar $JAR -D mapred.output.compress=true -D mapred.output.compression.codec=org.apache.hadoop.io.compress.GzipCodec -D mapred.compress.map.output=true -input input -output out -mapper cat -reducer cat && hdfs dfs -cat 'out/part-*' | gzip -d > local && hdfs dfs -rm -r out && hdfs dfs -mkdir out && hdfs dfs -put local out/part-00000",
        To("the corn|the mill grinds"),
    ),
    (
        "hadoop jar $JAR -D mapred.map.tasks.speculative.execution=false -D mapreduce.map.memory.mb=2048 -D mapred.child.java.opts=-Xmx512m -libjars some.jar -input input -output out -mapper cat -lazyOutput -verbose",
        To("the corn|the mill grinds"),
    ),
    // Refused by Hadoop.
    ("hadoop jar $JAR -input input -mapper cat", Refused(1, "Required argument: -output")),
    (
        "hadoop jar $JAR -input nowhere -output out -mapper cat",
        Refused(2, "Input path does not exist: hdfs:///user/me/nowhere"),
    ),
    (
        "hadoop jar $JAR -input input -output input -mapper cat",
        Refused(4, "Output directory hdfs:///user/me/input already exists"),
    ),
    (
        "hadoop jar $JAR -input input -output out -mapper cat -file missing.sh",
        Refused(1, "does not exist, or is not readable"),
    ),
    (
        "hadoop jar $JAR -input input -output out -mapper org.example.MyMapper",
        Refused(1, "Cannot run program \"org.example.MyMapper\""),
    ),
    (
        "hadoop jar $JAR -input input -output out -mapper 'cat | grep the'",
        Refused(1, "subprocess failed with code 1"),
    ),
    // Not supported here, with the reason.
    (
        "hadoop jar $JAR -input input -output out -mapper cat -outputformat org.apache.hadoop.mapred.SequenceFileOutputFormat",
        Refused(3, "available: TextOutputFormat"),
    ),
];

/// Writes the files that the lines use.
fn furnish(sandbox: &Sandbox) {
    for (name, content) in [
        ("hdfs/user/me/input/text", TEXT),
        ("hdfs/user/me/logs/1", "b.10.7\na.2.8\na.1.9\n"),
        ("hdfs/user/me/numbers", "10\n9\n-1\n"),
        ("hdfs/user/me/pairs", "a\t1\nb\t2\n"),
        ("hdfs/user/me/lookup.txt", "corn\nmill\n"),
        ("mapper.sh", "#!/bin/sh\ntr -s ' ' '\\n'\n"),
        ("reducer.sh", "#!/bin/sh\ncut -f1 | uniq -c | awk '{ print $2 \"\\t\" $1 }'\n"),
        ("combiner.sh", "#!/bin/sh\ncat\n"),
        ("tags.sh", "sed \"s/^/$TAG /\"\n"),
        ("lookup.txt", "corn\nmill\n"),
    ] {
        sandbox.write(name, content);
    }
    oracle::shell(
        "cd \"$1\" && tar cf lib.tar mapper.sh && cp lib.tar hdfs/user/me/lib.tar",
        &[&sandbox.text("")],
    );
}

#[test]
fn command_lines_of_courses_do_what_they_do_on_hadoop() {
    let sandbox = Sandbox::new();
    furnish(&sandbox);
    let jar = install(&sandbox);
    for (line, comes) in LINES {
        let words = ["-c", line];
        let path = format!("{}:{}", sandbox.text("home/bin"), std::env::var("PATH").unwrap_or_default());
        let shell = sandbox.program(Path::new("sh"), words).env("PATH", path).env("JAR", &jar);
        let shell = shell.env("GRISTMILL_HDFS_ROOT", sandbox.path("hdfs")).env("HADOOP_USER_NAME", "me");
        let finished = shell.env("GRISTMILL_STREAMING_FLAGS", "--workers 1 --no-sync").finish();
        match comes {
            To(expected) => {
                let finished = finished.expect_code(0);
                let out = String::from_utf8(oracle::whole(&sandbox.path("hdfs/user/me/out"))).unwrap();
                let mut lines: Vec<&str> = out.lines().map(str::trim).collect();
                lines.sort_unstable();
                assert_eq!(lines.join("|"), *expected, "{line}\n{}", finished.stderr);
            }
            Refused(code, said) => {
                let finished = finished.expect_code(*code);
                assert!(finished.stderr.contains(said), "{line}: no {said:?} in\n{}", finished.stderr);
                assert!(finished.stderr.contains("Streaming Command Failed!"), "{line}\n{}", finished.stderr);
                assert!(!sandbox.path("hdfs/user/me/out").exists(), "{line}");
            }
        }
        let _ = fs::remove_dir_all(sandbox.path("hdfs/user/me/out"));
    }
    sandbox.assert_nothing_left();
}
