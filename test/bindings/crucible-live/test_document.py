"""The example of the source document, run against a deployment."""

import unittest

from live_support import run, write_scripts

#: The example of the source document, as it is written there.
DOCUMENT = '''
from crucible import MLPlatform, Requirements

# Initialize platform
platform = MLPlatform()

# Define requirements
requirements = Requirements(
    gpu_memory_gb=16,
    duration_hours_estimated=3,
    checkpoint_frequency_minutes=30,
    interruptible=True,  # Allows spot instances
    max_cost_usd=10.00
)

# Submit with auto-selection
job = platform.submit(
    code=open('nanogpt_train.py').read(),
    requirements=requirements,
    preferences={
        'optimize_for': 'cost',  # or 'speed'
        'allowed_backends': None  # All backends
    }
)

# Monitor across backends
async for status in job.monitor():
    print(f"Backend: {status.backend}")
    print(f"Progress: {status.progress}%")
    print(f"Cost so far: ${status.cost:.2f}")
    
    if status.backend_changed:
        print(f"Migrated from {status.previous_backend} to {status.backend}")
'''

setUpModule = write_scripts


class TestDocument(unittest.TestCase):
    def test_the_example_of_the_source_document_runs_as_it_is_written(self):
        printed = run(DOCUMENT)
        self.assertIn("Backend: ec2:spot\nProgress: 100.0%\nCost so far: $0.00\n", printed)


if __name__ == "__main__":
    unittest.main()
