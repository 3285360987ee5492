import { createLambda } from './lambda/lambda'
import { createModal } from './modal/modal'
import type { Provider, ProviderParts } from './provider'

/** The providers in addition to AWS. */
export const PROVIDERS: readonly ((parts: ProviderParts) => Provider)[] = [createLambda, createModal]
