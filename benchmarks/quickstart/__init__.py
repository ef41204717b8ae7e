"""The quickstart over several seeds, against three controls that spend the same sandbox seconds.

    make bench-quickstart                               # hours; may be stopped and started again at any time
    python -m benchmarks.quickstart --minutes 120       # no new arm after two hours

What the arms are and how to read the numbers: benchmarks/README.md.
"""
