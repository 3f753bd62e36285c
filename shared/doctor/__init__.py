"""What both programs' `doctor` looks at on the machine: owners, modes, users, processes, units. It changes nothing.

Only looking: files are read and opened for reading, users are tried by becoming them in a child, nothing is repaired.
What each program keeps to itself (mail login, index, journal) its own `doctor` looks at.
"""
