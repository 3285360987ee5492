import { describeBackend } from './contract'
import { LAMBDA_TRAITS, LambdaHarness } from './lambda/harness'

describeBackend('lambda, over a fake of the API,', LAMBDA_TRAITS, async () => new LambdaHarness())
