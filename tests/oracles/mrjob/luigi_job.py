"""A word count of luigi.contrib.hadoop, and a walk through its hdfs client; prints the counts. For run.py."""
import os
import sys

import luigi
import luigi.contrib.hadoop
import luigi.contrib.hdfs
from luigi.contrib.hdfs.clients import get_autoconfig_client


class Text(luigi.ExternalTask):
    def output(self):
        return luigi.contrib.hdfs.HdfsTarget("hdfs:///texts/text.txt")


class WordCount(luigi.contrib.hadoop.JobTask):
    n_reduce_tasks = 2

    def requires(self):
        return Text()

    def output(self):
        return luigi.contrib.hdfs.HdfsTarget("hdfs:///counts", format=luigi.contrib.hdfs.PlainDir)

    def mapper(self, line):
        for word in line.split():
            self.incr_counter("words", "seen", 1)
            yield word, 1

    def combiner(self, key, values):
        yield key, sum(values)

    def reducer(self, key, values):
        yield key, sum(values)


def use_client(client, text: str) -> None:
    """Makes every call of the client that tasks make."""
    client.mkdir("/texts", parents=True)
    client.put(text, "/texts/text.txt")
    assert client.exists("/texts/text.txt") and not client.exists("/texts/nope")
    client.copy("/texts/text.txt", "/texts/copy.txt")
    client.rename("/texts/copy.txt", "/moved/copy.txt")
    client.chmod("/moved", "700", recursive=True)
    client.chown("/moved", os.environ["USER"], None, recursive=True)
    size = os.path.getsize(text)
    counted = {name: int(count) for name, count in client.count("/moved").items()}
    assert counted == {"content_size": size, "dir_count": 1, "file_count": 1}, counted
    client.touchz("/moved/empty")
    listed = sorted(client.listdir("/moved", include_size=True, include_type=True, include_time=True, recursive=True))
    assert [entry[1:3] for entry in listed] == [(size, "-"), (0, "-")], listed
    client.get("/moved/copy.txt", "back.txt")
    client.getmerge("/moved", "merged.txt")
    assert open("back.txt").read() == open("merged.txt").read() == open(text).read()
    client.remove("/moved/empty", recursive=False)
    client.remove("/moved", skip_trash=True)
    assert not client.exists("/moved")


def main() -> int:
    use_client(get_autoconfig_client(), sys.argv[1])
    if not luigi.build([WordCount()], local_scheduler=True):
        return 1
    with WordCount().output().open() as lines:
        print([(word, int(count)) for word, count in (line.decode().split("\t") for line in lines)])
    return 0


if __name__ == "__main__":
    # The job's class must be found by its module's name on workers.
    import luigi_job
    sys.exit(luigi_job.main())
