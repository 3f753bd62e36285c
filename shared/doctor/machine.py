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
from shared.doctor.upkeep import look_at_temporary
from shared.doctor.users import NoAnswer
from shared.landlock import landlock_version


def look_at_machine(installation: Installation) -> Report:
    """Look at files, users, processes and units; as root at all of them, else as far as this user may."""
    looking = Looking()
    looks = [
        look_at_places,
        look_at_separation,
        look_at_reach,
        look_at_processes,
        look_for_second_ways,
        look_at_units,
    ]
    for look in looks:
        try:
            look(installation, looking)
        except NoAnswer as error:
            # An agent can end what is done under its uid; the other looks go on.
            looking.unseen.append(str(error))
    look_at_temporary(looking)
    if landlock_version() == 0:
        looking.notes.append(
            "no Landlock here: the kernel has none, it is switched off (lsm=), or a container's filter refuses it; a "
            "process that reads hostile mail is kept from its program's own files by nothing"
        )
    if installation.gate is not None and installation.is_reader:
        look_at_gate(installation.gate, installation, looking)
    return looking.report()
