"""What is played, replayed and swept; the simulator runs compiled where `make compiled` has built it."""

from simulator.compiled import use

use()
