import { describeReserving } from './reserving-contract'
import { ScriptedReservingHarness } from './scripted/reserving/harness'

describeReserving('a scripted market', async () => new ScriptedReservingHarness())
