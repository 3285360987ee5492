import { describeBackend } from './contract'
import { LAMBDA_TRAITS, LambdaHarness } from './lambda/harness'

describeBackend('lambda', LAMBDA_TRAITS, () => LambdaHarness.make())
