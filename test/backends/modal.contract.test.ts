import { describeBackend } from './contract'
import { MODAL_TRAITS, ModalHarness } from './modal/harness'

describeBackend('modal', MODAL_TRAITS, () => ModalHarness.make())
