import { describeBackend } from './contract'
import { FakeHarness } from './modal/fake-harness'
import { MODAL_TRAITS } from './modal/harness'

describeBackend('modal, over a fake of the gateway,', MODAL_TRAITS, async () => new FakeHarness())
