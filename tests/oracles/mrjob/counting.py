"""A job of mrjob that counts in each of its steps. For run.py."""
from mrjob.job import MRJob
from mrjob.step import MRStep


class MRCounting(MRJob):
    def steps(self):
        return [MRStep(mapper=self.words, reducer=self.sums), MRStep(mapper=self.turned, reducer=self.most)]

    def words(self, _, line):
        self.increment_counter("seen", "lines")
        for word in line.split():
            self.increment_counter("seen", "words", 1)
            yield word, 1

    def sums(self, word, ones):
        self.increment_counter("made, with a comma", "sums of all")
        yield word, sum(ones)

    def turned(self, word, count):
        self.set_status("turning")
        self.increment_counter("seen", "sums", count)
        yield None, (count, word)

    def most(self, _, pairs):
        yield max(pairs)


if __name__ == "__main__":
    MRCounting.run()
