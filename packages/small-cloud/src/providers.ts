import { createModal } from './modal/modal'
import type { Provider, ProviderParts } from './provider'

/** The providers beside AWS. */
export const PROVIDERS: readonly ((parts: ProviderParts) => Provider)[] = [createModal]
