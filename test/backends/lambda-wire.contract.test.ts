import { describeBackend } from './contract'
import { LAMBDA_TRAITS } from './lambda/harness'
import { WireHarness } from './lambda/wire-harness'

describeBackend('lambda, over the wire,', LAMBDA_TRAITS, () => WireHarness.make())
