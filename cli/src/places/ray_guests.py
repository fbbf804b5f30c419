"""Workers of Gristmill as actors of Ray: each actor holds one `gristmill worker` on its node for as long as it lives.

Sent by `gristmill up --on ray` to a Python that has Ray. One JSON document comes on standard input, the line by which
workers join too; one goes to standard output. Ray starts an actor anew elsewhere when its node is lost.
"""
import json
import sys

import ray

# How long actors may take to be placed, seconds; and workers to end by themselves once their master has.
PLACED_MAX, OWN_END = 60.0, 10.0


class Guest:
    """One node's workers."""

    def __init__(self, words: list, join: str) -> None:
        import ctypes
        import os
        import signal
        import subprocess

        parent = os.getpid()

        def bind_to_parent() -> None:
            # An actor that Ray kills takes its workers along, which leave in good order.
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)

        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True,
                                        preexec_fn=bind_to_parent)
        self.process.stdin.write(join.encode())
        self.process.stdin.close()

    def where(self) -> list:
        import socket
        return [socket.gethostname(), self.process.pid, self.process.poll()]

    def end(self, patience: float) -> bool:
        """Waits until the workers have ended, or makes them."""
        import subprocess
        for wait in (patience, 0.2, 5.0):
            try:
                self.process.wait(wait)
                return True
            except subprocess.TimeoutExpired:
                self.process.terminate()  # the second one ends them at once
        self.process.kill()
        self.process.wait()
        return False


def names(order: dict) -> list:
    return [f"guest-{number}" for number in range(order["nodes"])]


def up(order: dict) -> dict:
    guest = ray.remote(Guest)
    options = {"lifetime": "detached", "max_restarts": -1, "num_cpus": order["processors"], "scheduling_strategy": "SPREAD"}
    actors = [guest.options(name=name, **options).remote(order["words"], order["join"]) for name in names(order)]
    asked = [actor.where.remote() for actor in actors]
    ready, late = ray.wait(asked, num_returns=len(asked), timeout=PLACED_MAX)
    guests, failed = [], []
    for answer in ready:
        try:
            guests.append(ray.get(answer))
        except ray.exceptions.RayError as error:
            failed.append(str(error).strip().splitlines()[-1])
    return {"guests": guests, "late": len(late), "failed": failed}


def down(order: dict) -> dict:
    actors, killed = [], 0
    for name in names(order):
        try:
            actors.append(ray.get_actor(name))
        except ValueError:
            continue  # it was never made, or is gone
    asked = [actor.end.remote(OWN_END) for actor in actors]
    ready, late = ray.wait(asked, num_returns=len(asked), timeout=OWN_END + 10) if asked else ([], [])
    for answer in ready:
        try:
            killed += not ray.get(answer)
        except ray.exceptions.RayError:
            killed += 1
    for actor in actors:
        ray.kill(actor, no_restart=True)
    return {"killed": killed + len(late)}


def main() -> None:
    order = json.load(sys.stdin)
    ray.init(address=order["address"], namespace=order["name"], log_to_driver=False, logging_level="error")
    print(json.dumps({"up": up, "down": down}[order["verb"]](order)), flush=True)
    ray.shutdown()


main()
