"""Runs a job of mrjob, by module (or file) and class, and prints its lines and its counters as JSON. For run.py."""
import importlib
import importlib.util
import json
import sys


def main() -> None:
    module_name, class_name, *arguments = sys.argv[1:]
    if module_name.endswith(".py"):
        spec = importlib.util.spec_from_file_location("counting", module_name)
        module = importlib.util.module_from_spec(spec)
        sys.modules["counting"] = module
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(f"mrjob.examples.{module_name}")
    job = getattr(module, class_name)(arguments)
    job.set_up_logging(stream=sys.stderr)
    with job.make_runner() as runner:
        runner.run()
        text = b"".join(runner.cat_output()).decode()
        print(json.dumps({"lines": text.splitlines(), "counters": runner.counters()}))


if __name__ == "__main__":
    main()
