import os

import kuota

team = os.environ.get("KUOTA_TEAM", "vision")
client = kuota.Client()
low, high = kuota.Queue(team, share="lowpri", client=client), kuota.Queue(team, share="highpri", client=client)

# The first task uses the whole quota of the team, so that the next two wait.
first = low.submit(["python", "train.py"], name="first", gpus=1, priority_class="low")
first.wait(until="Running")
last = low.submit(["python", "train.py"], name="low", gpus=1, priority_class="low")
middle = high.submit(["python", "train.py"], name="mid", gpus=1, priority_class="mid")
print(low.snapshot())  # mid, low

first.stop()  # or first.wait(), which waits until it ends
middle.wait(until="Running")

# A task of a higher class is submitted last, and overtakes.
print(high.check(["python", "train.py"], gpus=1, priority_class="high"))
overtakes = high.submit(["python", "train.py"], name="high", gpus=1, priority_class="high")
print(low.snapshot())  # high, low
print(last.why())

middle.stop()
overtakes.wait(until="Running")
overtakes.stop()
last.wait(until="Running")
print(last)  # <Job hyperpod-ns-vision/job/low Running>
