import { describe } from '@jest/globals'
import { describeBackend } from './contract'
import { EC2_TRAITS, Ec2Harness } from './ec2/harness'
import { WAYS } from './ec2/ways'

describe.each(WAYS)('%s', (way) => {
  describeBackend('ec2, over a fake of the provider,', EC2_TRAITS, async () => new Ec2Harness({}, {}, way))
})
