import gristmill
def words(line): return ((word, 1) for word in line.split())
def total(word, counts): yield word, sum(counts)
for word, count in gristmill.run(gristmill.Job(words, total, combiner=total), "books"):
    print(word, count)
