import { describeBackend } from './contract'
import { Ec2Harness } from './ec2/harness'

describeBackend('ec2, over a fake of the provider,', async () => new Ec2Harness())
