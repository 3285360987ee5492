import { jest } from '@jest/globals'
import { WireReservingHarness } from './ec2/reserving/wire-harness'
import { describeReserving } from './reserving-contract'

jest.setTimeout(60_000)

describeReserving('ec2', () => WireReservingHarness.make())
