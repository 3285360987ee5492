import { describeReserving } from './reserving-contract'
import { SCRIPTED_RESERVING_TRAITS, ScriptedReservingHarness } from './scripted/reserving/harness'

describeReserving('a scripted market', SCRIPTED_RESERVING_TRAITS, async () => new ScriptedReservingHarness())
