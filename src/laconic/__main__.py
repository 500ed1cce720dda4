"""python -m laconic"""

from laconic.cli import main

main()
