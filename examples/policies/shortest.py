import json
import sys

jobs = {}
for line in sys.stdin:
    question = json.loads(line)
    jobs.update((job["seq"], job) for job in question["jobs"])
    for seq in question["left"]:
        jobs.pop(seq, None)
    # Work left at map, shuffle and reduce; the order of arrival decides between equals.
    order = sorted(jobs, key=lambda seq: (sum(jobs[seq]["left"]), seq))
    print(json.dumps({"order": order}), flush=True)
