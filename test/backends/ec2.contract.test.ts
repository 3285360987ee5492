import { describe } from '@jest/globals'
import { chosen } from '../support/selection'
import { describeBackend } from './contract'
import { EC2_TRAITS, Ec2Harness } from './ec2/harness'
import { WAYS } from './ec2/ways'

describe.each(chosen(WAYS, ['spot', 'block']))('%s', (way) => {
  describeBackend('ec2', EC2_TRAITS, () => Ec2Harness.make({}, {}, way))
})
