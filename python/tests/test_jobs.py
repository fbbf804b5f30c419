"""Jobs of functions on an embedded cluster, with the program in the wheel."""
import bisect
import collections
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import gristmill
from conftest import TEXT, WORDS


def words(line):
    return ((word, 1) for word in line.split())


def total(word, counts):
    yield word, sum(counts)


COUNT = gristmill.Job(words, total)


def test_five_lines_count_words(text):
    program = pathlib.Path(__file__).with_name("count_words.py")
    assert len(program.read_text().splitlines()) == 5
    text.rename(text.parent / "books")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=text.parent)
    assert sorted(done.stdout.splitlines()) == sorted(f"{word} {count}" for word, count in WORDS.items()), done.stderr


def test_result_is_the_same_whatever_the_number_of_parts_and_with_a_combiner(text, run):
    for reduces in (1, 3):
        for combiner in (None, total):
            result = run(gristmill.Job(words, total, combiner=combiner, reduces=reduces), text)
            assert dict(result) == WORDS
            assert len(result.parts()) == reduces


def test_values_and_keys_come_as_they_were_given(text, run):
    def pairs(line):
        for key in (None, True, 1, 1.0, "1", b"1", (1, "a"), 1 << 80):
            yield key, {"line": [line, (key,)]}

    def first(key, values):
        yield key, sorted(value["line"][0] for value in values)

    result = list(run(gristmill.Job(pairs, first), text))
    assert len(result) == 8
    assert {type(key) for key, _ in result} == {type(None), bool, int, float, str, bytes, tuple}
    assert all(lines == sorted(TEXT.splitlines()) for _, lines in result)


def test_keys_of_a_part_come_in_the_order_of_their_values(tmp_path, run):
    seed = time.time_ns() % 1_000_000
    print("seed", seed)
    draw = random.Random(seed)
    plain = [
        lambda: draw.random() < 0.5,
        lambda: draw.choice([draw.randint(-3, 3), draw.randint(-(1 << 63), (1 << 63) - 1)]),
        lambda: draw.choice([draw.uniform(-2, 2), 1e300, -1e-300, float("inf")]),
        lambda: bytes(draw.choices(b"\0\1a\xff", k=draw.randint(0, 3))),
        lambda: "".join(draw.choices("\0ab\u00e9\uffff\U0001f600", k=draw.randint(0, 3))),
    ]
    keys = [draw.choice(plain)() for _ in range(300)]
    keys += [tuple(draw.choice(plain)() for _ in range(draw.randint(0, 3))) for _ in range(200)]
    ranks = {kind: rank for rank, kind in enumerate((bool, int, float, bytes, str, tuple))}

    def rank(key):
        return ranks[type(key)], tuple(map(rank, key)) if type(key) is tuple else key

    (tmp_path / "numbers").write_text("".join(f"{number}\n" for number in range(len(keys))))
    job = gristmill.Job(lambda line: [(keys[int(line)], 1)], total)
    found = [key for key, _ in run(job, tmp_path / "numbers")]
    assert list(map(rank, found)) == sorted(set(map(rank, keys)))


def test_partitioner_chooses_the_part_of_a_key(text, run):
    bounds = ["c", "p"]

    def by_range(key, reduces):
        assert reduces == 3
        return bisect.bisect(bounds, key)

    for combiner in (None, total):
        result = run(gristmill.Job(words, total, combiner=combiner, reduces=3, partitioner=by_range), text)
        assert list(result) == sorted(WORDS.items())
    for wrong in (3, -1, "1", True):
        with pytest.raises(gristmill.FunctionError, match=r"it must give a number from 0 to 2"):
            run(gristmill.Job(words, total, reduces=3, partitioner=lambda key, reduces: wrong), text)


def test_values_of_a_group_come_in_the_order_of_its_keys(tmp_path, run):
    visits = [(f"user{number * 7 % 5}", number * 37 % 101) for number in range(100)]
    (tmp_path / "visits").write_text("".join(f"{user} {at}\n" for user, at in visits))

    def by_time(line):
        user, at = line.split()
        yield (user, int(at)), int(at)

    def listed(user, times):
        yield user, list(times)

    job = gristmill.Job(by_time, listed, reduces=2, group=lambda key: key[0])
    expected = {user: sorted(at for other, at in visits if other == user) for user, _ in visits}
    assert dict(run(job, tmp_path / "visits")) == expected
    alike = gristmill.Job(lambda line: [(key, 1) for key in (1, 1.0, True)], total, group=lambda key: key)
    assert sorted(type(key).__name__ for key, _ in run(alike, tmp_path / "visits")) == ["bool", "float", "int"]


def test_files_are_in_the_directory_of_each_task(tmp_path, text, run):
    (tmp_path / "stop words").write_text("the a\n")

    def without(line):
        stop = set(open("stop words").read().split())
        return ((word, 1) for word in line.split() if word not in stop)

    job = gristmill.Job(without, total, files=[tmp_path / "stop words"])
    assert dict(run(job, text)) == {word: count for word, count in WORDS.items() if word not in ("the", "a")}
    with pytest.raises(FileNotFoundError, match="files= takes files"):
        run(gristmill.Job(without, total, files=[tmp_path]), text)


def test_bytes_that_are_no_text_come_back(tmp_path, run):
    data = bytes(range(1, 256)).replace(b"\n", b"").replace(b"\r", b"")
    (tmp_path / "bytes").write_bytes(data + b"\nno end")
    result = list(run(gristmill.Job(lambda line: [(line, None)]), tmp_path / "bytes"))
    assert [key.encode("utf-8", "surrogateescape") for key, _ in result] == [data, b"no end"]


def test_objects_are_sent_only_by_those_who_trust_workers(text, run):
    def sets(line):
        yield line, set(line.split())

    for job in gristmill.Job(sets), gristmill.Job(words, lambda word, counts: [(word, {1})]), gristmill.Job(lambda line: [(line, [{1}])]):
        with pytest.raises(gristmill.FunctionError, match="a value of type set is not sent"):
            run(job, text)
    assert dict(run(gristmill.Job(sets, pickled=True), text))["the grist"] == {"the", "grist"}
    reduced = lambda line, values: [(line, sorted(next(values)))]
    assert dict(run(gristmill.Job(sets, reduced, pickled=True), text))["the grist"] == ["grist", "the"]


@pytest.mark.parametrize("leave", ["sys.exit(0)", "os._exit(0)"])
def test_function_that_ends_its_process_fails_the_job(text, run, leave):
    def leaving(line):
        if line == "the grist":
            eval(leave, {"sys": __import__("sys"), "os": __import__("os")})
        yield line, 1

    def leaving_at_last(key, values):
        return leaving(key)

    for job in (gristmill.Job(leaving), gristmill.Job(lambda line: [(line, 1)], leaving_at_last)):
        with pytest.raises(gristmill.JobError, match="SystemExit|reported no end of its task"):
            run(job, text)


def test_process_that_a_function_starts_does_not_read_the_input(text, run):
    def reading(line):
        yield line, subprocess.run(["cat"], stdout=subprocess.PIPE).stdout

    assert len(list(run(gristmill.Job(reading), text))) == 4


def test_job_reads_what_another_gave(text, run):
    counted = run(COUNT, text)
    by_count = gristmill.Job(lambda word, count: [(count, word)], lambda count, words: [(count, sorted(words))])
    assert dict(run(by_count, counted)) == {3: ["the"], 2: ["mill"], 1: ["grinds", "grist"]}


def test_result_is_a_table(text, run):
    counted = run(gristmill.Job(lambda line: ((word, 1) for word in line.split()), lambda word, ones: [(word, sum(ones))]), text)
    frame = counted.frame(["word", "count"])
    assert dict(zip(frame["word"], frame["count"])) == WORDS and str(frame["count"].dtype) == "int64"
    lengths = run(gristmill.Job(lambda line: [((word, len(word)), (1, word[0])) for word in line.split()]), text)
    wide = lengths.frame(["word", "length", "one", "first"])
    assert set(zip(wide["word"], wide["length"], wide["first"])) == {(word, len(word), word[0]) for word in WORDS}


def test_package_is_the_program_too():
    done = subprocess.run([sys.executable, "-m", "gristmill", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("gristmill ")
    assert subprocess.run([sys.executable, "-m", "gristmill", "no-such-command"], capture_output=True).returncode == 2
    nowhere = {"PATH": "", "GRISTMILL_PROGRAM": "/nowhere/gristmill"}
    lost = subprocess.run([sys.executable, "-m", "gristmill"], capture_output=True, text=True, env=nowhere)
    assert lost.returncode == 1 and "/nowhere/gristmill" in lost.stderr, lost.stderr


def test_output_stays_where_it_was_asked_for(text, tmp_path, run):
    result = run(COUNT, text, output=tmp_path / "out")
    directory = pathlib.Path(result.output)
    del result
    assert (directory / "part-00000").stat().st_size > 0
    with pytest.raises(gristmill.JobError, match="already exists"):
        run(COUNT, text, output=tmp_path / "out")


def test_counters_are_totalled(text, run):
    def counting(line):
        gristmill.count("lines")
        gristmill.count("letters", len(line), group="odd, group")
        gristmill.count("below", -1)
        return ()

    counters = run(gristmill.Job(counting), text).counters
    letters = sum(len(line) for line in TEXT.splitlines())
    assert counters == {"python": {"lines": 4, "below": -4}, "odd  group": {"letters": letters}}


def test_what_functions_print_is_no_pair(text, run):
    def talking(line):
        print("between", line)
        return [(line, 1)]

    assert len(list(run(gristmill.Job(talking), text))) == 4


def test_exception_of_a_function_comes_back_with_its_traceback(text, run):
    def dividing(line):
        return [(line, 1 // len(line))]  # One | of the lines is empty.

    def failing(key, values):
        raise KeyError("a | b")

    with pytest.raises(gristmill.FunctionError) as caught:
        run(gristmill.Job(dividing), text)
    error = caught.value
    assert (error.exception, error.message) == ("ZeroDivisionError", "integer division or modulo by zero")
    assert error.traceback.startswith("Traceback (most recent call last):\n") and "in dividing" in error.traceback
    assert "return [(line, 1 // len(line))]  # One | of the lines is empty." in error.traceback
    assert "gristmill/worker" not in error.traceback
    with pytest.raises(gristmill.FunctionError) as caught:
        run(gristmill.Job(words, failing), text)
    assert (caught.value.exception, caught.value.message) == ("KeyError", "'a | b'")
    assert "reduce" in caught.value.where


def test_texts_of_several_lines_are_messages_and_own_complaints_have_no_calls(text, run):
    def parsing(line):
        raise ValueError("cannot parse:\n  field 3: 'x'\nof the line")

    with pytest.raises(gristmill.FunctionError) as caught:
        run(gristmill.Job(parsing), text)
    assert (caught.value.exception, caught.value.message) == ("ValueError", "cannot parse:\n  field 3: 'x'\nof the line")
    with pytest.raises(gristmill.FunctionError) as caught:
        run(gristmill.Job(lambda line: 5), text)
    assert "File" not in caught.value.traceback and caught.value.message.startswith("the mapper gave 5:")


def test_counters_take_whole_numbers(text, run):
    for amount in 0.5, "3":
        with pytest.raises(gristmill.FunctionError, match=f"count\\('part', {amount!r}\\): a counter takes whole numbers"):
            run(gristmill.Job(lambda line: gristmill.count("part", amount)), text)


def test_script_that_starts_its_job_while_a_worker_imports_it_is_refused(text, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["job.zip", "map"])
    with pytest.raises(gristmill.GristmillError, match="start it below `if __name__"):
        gristmill.submit(gristmill.Job(words), text)


def test_deep_tracebacks_keep_their_end(text, run):
    def deep(depth):
        return deep(depth - 1) if depth else {}["nothing"]

    def other(depth):
        return deep(depth)

    with pytest.raises(gristmill.FunctionError) as caught:
        run(gristmill.Job(lambda line: other(50)), text)
    assert caught.value.exception == "KeyError" and caught.value.traceback.count("in deep") >= 2
    assert caught.value.traceback.count("Traceback (most recent call last):") == 1


@pytest.mark.parametrize("given, words", [
    (lambda line: line, "must return or yield pairs"), (lambda line: [line], "where a pair"), (lambda line: [(set(), 1)], "keys are str"),
])
def test_what_is_no_pair_is_refused_with_what_it_was(text, run, given, words):
    with pytest.raises(gristmill.FunctionError, match=words) as caught:
        run(gristmill.Job(given), text)
    assert caught.value.exception == "TypeError"


def test_mistakes_are_refused_before_anything_starts(text):
    with pytest.raises(TypeError, match=r"run\(job, \*files\)"):
        gristmill.submit(gristmill.Job(words), [text])
    with pytest.raises(TypeError, match="must be a function"):
        gristmill.Job("cat")
    with pytest.raises(ValueError, match="has nothing to combine for"):
        gristmill.Job(words, combiner=total)
    with pytest.raises(ValueError, match="at least one"):
        gristmill.Job(words, total, reduces=0)
    with pytest.raises(ValueError, match="needs an input"):
        gristmill.submit(COUNT)
    with pytest.raises(ValueError, match="comma"):
        gristmill.submit(COUNT, "a,b")
    with pytest.raises(gristmill.ShippingError, match="cannot be sent"):
        gristmill.submit(gristmill.Job(lambda line: threading.Lock() and [], combiner=None, reducer=threading.Lock().acquire), text)
    with pytest.raises(gristmill.JobError, match="does not exist"):
        gristmill.run(COUNT, text.parent / "nothing")


def test_job_that_is_waited_for_too_briefly_goes_on_and_can_be_cancelled(text):
    def standing(line):
        threading.Event().wait()
        return ()

    job = gristmill.submit(gristmill.Job(standing), text, workers=1)
    with pytest.raises(TimeoutError):
        job.wait(0.5)
    assert not job.done
    job.cancel()
    assert job.done and job.state == "cancelled"
    with pytest.raises(gristmill.JobError):
        job.wait()


def goes_on(process: int) -> bool:
    """Returns true if a process runs and is not a zombie."""
    try:
        return bool(pathlib.Path(f"/proc/{process}/cmdline").read_bytes())
    except OSError:
        return False


def test_job_ends_with_the_program_that_began_it(text):
    program = f"""
import gristmill, sys, threading
def standing(line): threading.Event().wait()
job = gristmill.submit(gristmill.Job(standing), {str(text)!r}, workers=1)
while job.job_status is None: threading.Event().wait(0.01)
print(job._process.pid, flush=True)
job.wait()
"""
    # A shell makes programs in its background ignore SIGINT.
    ignored = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
    beginner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, preexec_fn=ignored)
    job = int(beginner.stdout.readline())
    beginner.kill()
    beginner.wait()
    end = time.monotonic() + 30
    while goes_on(job):
        assert time.monotonic() < end, "the job goes on for nobody"
        time.sleep(0.05)


def test_functions_of_modules_that_workers_do_not_have_are_sent(tmp_path, text):
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package/__init__.py").write_text("from . import inner\n")
    (tmp_path / "own_package/inner.py").write_text("import other_module\ndef split(line): return other_module.words_of(line)\n")
    (tmp_path / "other_module.py").write_text("def words_of(line): return line.split()\n")
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent("""
        import sys
        if "--without" in sys.argv:
            sys.modules["cloudpickle"] = None
        import gristmill, own_package
        LIMIT = 3
        def words(line):
            return [(word, 1) for word in own_package.inner.split(line) if len(word) <= LIMIT]
        def total(word, counts):
            yield word, sum(counts)
        if __name__ == "__main__":
            print(sorted(gristmill.run(gristmill.Job(words, total), sys.argv[1], workers=1)))
    """))
    for more in ([], ["--without"]):
        done = subprocess.run([sys.executable, script, text, *more], capture_output=True, text=True)
        assert done.stdout.strip() == "[('the', 3)]", done.stderr


def test_objects_of_the_script_s_own_classes_come_back_with_and_without_cloudpickle(tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent("""
        import sys
        if "--without" in sys.argv:
            sys.modules["cloudpickle"] = None
        import dataclasses, gristmill
        @dataclasses.dataclass
        class Seen:
            count: int
        def words(line):
            return [(word, Seen(1)) for word in line.split()]
        def total(word, counts):
            yield word, Seen(sum(one.count for one in counts))
        if __name__ == "__main__":
            job = gristmill.Job(words, total, combiner=total, reduces=2, pickled=True)
            assert dict(gristmill.run(job, sys.argv[1], workers=1))["the"] == Seen(3)
            print("right")
    """))
    for more in ([], ["--without"]):
        done = subprocess.run([sys.executable, script, text, *more], capture_output=True, text=True)
        assert done.stdout == "right\n", done.stderr


def test_without_cloudpickle_functions_without_a_name_are_refused_with_what_would_help(text, monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(gristmill.ShippingError, match=r"pip install gristmill\[notebook\]"):
        gristmill.submit(gristmill.Job(lambda line: []), text)


def test_large_input_is_counted_as_python_counts_it(tmp_path, run):
    lines = [" ".join(str(number * word % 997) for word in range(9)) for number in range(20_000)]
    path = tmp_path / "numbers"
    path.write_text("\n".join(lines))
    expected = collections.Counter(word for line in lines for word in line.split())
    assert dict(run(gristmill.Job(words, total, combiner=total, reduces=2), path)) == expected


def test_job_shows_itself_as_html_without_asking_anybody(text, run):
    result = run(COUNT, text)
    shown = result._repr_html_()
    assert "<svg" in shown and "map" in shown and "succeeded" in shown
    assert "<script" not in shown and "src=" not in shown
    assert repr(result) == "<words: succeeded>"
