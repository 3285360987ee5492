import {
  parseBeat,
  parseClaim,
  parseDrain,
  parseLease,
  parseLimits,
  parseLogLine,
  parseManifest,
  parseOrder,
  parseRestores,
  parseResult,
} from '../../intake/documents'

/** The product's reader of each kind of document between the control plane and the runner. */
export const DOCUMENT_PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  beat: parseBeat,
  claim: parseClaim,
  drain: parseDrain,
  lease: parseLease,
  limits: parseLimits,
  'log-line': parseLogLine,
  manifest: parseManifest,
  order: parseOrder,
  restores: parseRestores,
  result: parseResult,
}

/** The kind of a document, by the name of its file; undefined for one that only the machine reads. */
export function kindOfDocument(fileName: string): string | undefined {
  return Object.keys(DOCUMENT_PARSERS).find((kind) => fileName.startsWith(kind))
}
