"""What the living demo tells its processes."""

from lcm.supervisor.address import Address
from lcm.supervisor.demo_processes import DemoFleet


def test_labs_of_minutes_count_unless_someone_says_otherwise(tmp_path):
    fleet = DemoFleet.planned(Address("127.0.0.1", 8000), tmp_path)
    told = fleet.environment({"SIMULATOR_URL": "http://127.0.0.1:9", "HOME": "/"})
    assert told == {"SAMPLE_BOOTED_SECONDS": "120", "SIMULATOR_URL": fleet.simulator_url, "HOME": "/"}
    assert fleet.environment({"SAMPLE_BOOTED_SECONDS": "600"})["SAMPLE_BOOTED_SECONDS"] == "600"
