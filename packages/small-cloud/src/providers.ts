import type { Provider, ProviderParts } from './provider'

/** The providers beside AWS. */
export const PROVIDERS: readonly ((parts: ProviderParts) => Provider)[] = []
