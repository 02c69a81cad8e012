"""`python -m rocetap.cli`: the command without its script."""

from rocetap.cli import main

main()
