"""Workers of Gristmill as detached actors of Ray, one for each node. Ray restarts an actor elsewhere if its node is lost.

    ray.py up NAME ADDRESS NODES CPUS COMMAND...  < JOIN_LINE     e.g. gristmill cluster worker --join -
    ray.py down NAME ADDRESS

Used by `gristmill cluster up --on ray` and `gristmill cluster down`. Prints the host of each actor that has a node.
"""
import sys

import ray

# Seconds: for Ray to place actors, and for workers to end by themselves after their master has.
PLACED_MAX, OWN_END = 60.0, 10.0


class Guest:
    """The workers of one node."""

    def __init__(self, command: list, join: str) -> None:
        import ctypes
        import os
        import signal
        import subprocess

        parent = os.getpid()

        def bind_to_parent() -> None:
            # When Ray kills the actor, its workers leave in good order.
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)

        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, preexec_fn=bind_to_parent)
        self.process.stdin.write(join.encode())
        self.process.stdin.close()

    def host(self) -> str:
        import socket
        return socket.gethostname()

    def end(self, timeout: float) -> None:
        """Waits for the workers to end, then stops them."""
        import subprocess
        for wait in (timeout, 0.2, 5.0):
            try:
                self.process.wait(wait)
                return
            except subprocess.TimeoutExpired:
                self.process.terminate()  # a second signal ends them at once
        self.process.kill()
        self.process.wait()


def up(nodes: str, cpus: str, *command: str) -> None:
    join = sys.stdin.read()
    options = {"lifetime": "detached", "max_restarts": -1, "num_cpus": int(cpus), "scheduling_strategy": "SPREAD"}
    guest = ray.remote(Guest)
    actors = [guest.options(name=f"guest-{number}", **options).remote(list(command), join) for number in range(int(nodes))]
    hosts = [actor.host.remote() for actor in actors]
    for host in ray.wait(hosts, num_returns=len(hosts), timeout=PLACED_MAX)[0]:
        print(ray.get(host), flush=True)


def down() -> None:
    actors = [ray.get_actor(name) for name in ray.util.list_named_actors()]
    ends = [actor.end.remote(OWN_END) for actor in actors]
    if ends:
        ray.wait(ends, num_returns=len(ends), timeout=OWN_END + 10)
    for actor in actors:
        ray.kill(actor, no_restart=True)


verb, name, address, *rest = sys.argv[1:]
ray.init(address=address, namespace=name, log_to_driver=False, logging_level="error")
{"up": up, "down": down}[verb](*rest)
ray.shutdown()
