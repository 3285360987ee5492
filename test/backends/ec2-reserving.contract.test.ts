import { EC2_RESERVING_TRAITS, Ec2ReservingHarness } from './ec2/reserving/harness'
import { describeReserving } from './reserving-contract'

describeReserving(
  'ec2, over a fake of the provider,',
  EC2_RESERVING_TRAITS,
  async () => new Ec2ReservingHarness(),
)
