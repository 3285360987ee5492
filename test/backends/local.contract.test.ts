import { describeBackend } from './contract'
import { LOCAL_TRAITS, LocalHarness } from './local/harness'
import { useRealRunner } from './local/runners'

const realRunner = useRealRunner()

describeBackend('local', LOCAL_TRAITS, () => LocalHarness.make(realRunner()))
