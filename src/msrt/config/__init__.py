"""What a pynative.yaml means for a run: degrees, batch, schedule, refusals. Neither numpy nor MindSpore is imported."""
