from multihorizon.cli import main

raise SystemExit(main())
