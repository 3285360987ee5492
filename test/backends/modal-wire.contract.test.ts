import { describeBackend } from './contract'
import { openStandIn } from './modal/gateways'
import { MODAL_TRAITS, ModalHarness } from './modal/harness'

describeBackend('modal, over the wire,', MODAL_TRAITS, () => ModalHarness.make(openStandIn))
