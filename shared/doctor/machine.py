"""All that a doctor looks at on the machine, in one call."""

from shared.doctor.finding import Looking, Report
from shared.doctor.gate import look_at_gate
from shared.doctor.installation import Installation
from shared.doctor.places import look_at_places
from shared.doctor.processes import look_at_processes
from shared.doctor.reach import look_at_reach
from shared.doctor.second_way import look_for_second_ways
from shared.doctor.separation import look_at_separation
from shared.doctor.units import look_at_units


def look_at_machine(installation: Installation) -> Report:
    """Look at files, users, processes and units; as root at all of them, else as far as this user may."""
    looking = Looking()
    look_at_places(installation, looking)
    look_at_separation(installation, looking)
    look_at_reach(installation, looking)
    look_at_processes(installation, looking)
    look_for_second_ways(installation, looking)
    look_at_units(installation, looking)
    if installation.gate is not None and installation.is_reader:
        look_at_gate(installation.gate, installation, looking)
    return looking.report()
