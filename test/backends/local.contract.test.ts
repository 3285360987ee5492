import { describeBackend } from './contract'
import { LocalHarness } from './local/harness'
import { useRealRunner } from './local/runners'

const realRunner = useRealRunner()

describeBackend('local', () => LocalHarness.make(realRunner()))
