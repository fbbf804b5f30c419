"""Runs a program in a pseudo-terminal, sends keys and signals, and reports the final state of the terminal. For tests.

usage: pty.py ROWS COLUMNS STEPS PROGRAM ARGUMENTS...   (STEPS is JSON: see, send, signal, say, end)
"""
import fcntl, json, os, pty, re, select, signal, struct, subprocess, sys, termios, time

PATIENCE_SECONDS = 60
rows, columns, steps, command = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4:]
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
before = termios.tcgetattr(theirs)
cells = {False: [[" "] * columns for _ in range(rows)], True: [[" "] * columns for _ in range(rows)]}
state = {"row": 0, "column": 0, "alternate": False, "cursor": True, "rest": "", "saved": (0, 0)}
SEQUENCE = re.compile(r"\x1b\[([?0-9;:]*)([A-Za-z])|\x1b[()][A-Z0-9]|\x1b\][^\x07]*\x07|\x1b[=>78]")


def down():
    if state["row"] + 1 < rows:
        state["row"] += 1
    else:
        screen = cells[state["alternate"]]
        screen.append(screen.pop(0))
        screen[-1][:] = [" "] * columns


def show(text: str):
    """Emulates as much of a terminal as is needed to read its contents."""
    text, at = state["rest"] + text, 0
    state["rest"] = ""
    while at < len(text):
        character = text[at]
        if character == "\x1b":
            match = SEQUENCE.match(text, at)
            if match is None:
                state["rest"] = text[at:]
                return
            at = match.end()
            numbers, letter = match[1] or "", match[2]
            screen = cells[state["alternate"]]
            if letter == "H":
                row, column = ([int(number or 1) for number in numbers.split(";")] + [1, 1])[:2] if numbers else (1, 1)
                state["row"], state["column"] = row - 1, column - 1
            elif letter == "J":
                for line in screen:
                    line[:] = [" "] * columns
            elif letter in ("h", "l") and numbers == "?1049":
                state["alternate"] = letter == "h"
                if letter == "h":
                    state["saved"] = state["row"], state["column"]
                else:
                    state["row"], state["column"] = state["saved"]
            elif letter in ("h", "l") and numbers == "?25":
                state["cursor"] = letter == "h"
            continue
        at += 1
        if character == "\r":
            state["column"] = 0
        elif character == "\n":
            down()
        elif character >= " ":
            if columns <= state["column"]:
                down()
                state["column"] = 0
            cells[state["alternate"]][state["row"]][state["column"]] = character
            state["column"] += 1


def picture() -> str:
    return "\n".join("".join(line).rstrip() for line in cells[state["alternate"]])


decoder = __import__("codecs").getincrementaldecoder("utf-8")("replace")
everything = []


def read(seconds: float) -> bool:
    if not select.select([ours], [], [], seconds)[0]:
        return False
    got = decoder.decode(os.read(ours, 1 << 16))
    everything.append(got)
    show(got)
    return True


def lead():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=lead)
for what, *words in steps:
    end = time.monotonic() + PATIENCE_SECONDS
    if what == "see":
        while words[0] not in picture():
            if end < time.monotonic() or (child.poll() is not None and not read(0.2)):
                child.kill()
                raise SystemExit(f"not seen: {words[0]!r} in\n{picture()}\nended: {child.poll()}")
            read(0.05)
    elif what == "send":
        os.write(ours, words[0].encode())
    elif what == "signal":
        child.send_signal(signal.Signals["SIG" + words[0]])
    elif what == "say":
        print(words[0], flush=True)
    elif what == "end":
        while child.poll() is None:
            if end < time.monotonic():
                child.kill()
                raise SystemExit(f"it does not end:\n{picture()}")
            read(0.05)
while read(0.2):
    pass
if child.poll() is None:
    child.kill()
print(json.dumps({
    "code": child.wait(), "as_before": termios.tcgetattr(theirs) == before, "alternate": state["alternate"],
    "cursor": state["cursor"], "left": "\n".join("".join(line).rstrip() for line in cells[False]).strip(),
    "controls": sorted({hex(ord(c)) for c in "".join(everything) if ord(c) < 32 or 127 <= ord(c) < 160}),
}))
