import { jest } from '@jest/globals'
import { WIRE_RESERVING_TRAITS, WireReservingHarness } from './ec2/reserving/wire-harness'
import { describeReserving } from './reserving-contract'

jest.setTimeout(60_000)

describeReserving('ec2, over the wire,', WIRE_RESERVING_TRAITS, () => WireReservingHarness.make())
