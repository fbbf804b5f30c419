"""A job of mrjob whose mapper raises. For run.py."""
from mrjob.job import MRJob


class MRFailing(MRJob):
    def mapper(self, _, line):
        if line == "two":
            raise ValueError("there is no two")
        yield line, 1


if __name__ == "__main__":
    MRFailing.run()
