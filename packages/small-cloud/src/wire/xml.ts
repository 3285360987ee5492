/** Answers as XML. */

/** A field that is `undefined` is omitted; a list becomes one element per item inside the field. */
export type Xml =
  string | number | boolean | Date | undefined | Items | readonly Xml[] | { readonly [name: string]: Xml }

/** A list whose elements have their own name. */
export class Items {
  constructor(
    readonly name: string,
    readonly items: readonly Xml[],
  ) {}
}

export const EC2_NAMESPACE = 'http://ec2.amazonaws.com/doc/2016-11-15/'

/** @param itemName `item` for EC2, `member` for STS and IAM */
function element(name: string, value: Xml, itemName: string): string {
  if (value === undefined) return ''
  return `<${name}>${content(value, itemName)}</${name}>`
}

function content(value: Xml, itemName: string): string {
  if (Array.isArray(value)) return value.map((each: Xml) => element(itemName, each, itemName)).join('')
  if (value instanceof Items) return value.items.map((each) => element(value.name, each, itemName)).join('')
  if (value instanceof Date) return value.toISOString()
  if (typeof value === 'object')
    return Object.entries(value)
      .map(([name, each]) => element(name, each, itemName))
      .join('')
  return escape(String(value))
}

// XML 1.0 does not allow control characters, not even escaped.
// eslint-disable-next-line no-control-regex -- these are the ones that are meant
const UNPRINTABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g
const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\r': '&#xD;',
}

function escape(text: string): string {
  return text.replace(UNPRINTABLE, '\ufffd').replace(/[&<>"\r]/g, (character) => ENTITIES[character]!)
}

export function ec2Answer(action: string, requestId: string, fields: Xml): string {
  const inside = content({ requestId, ...(fields as object) }, 'item')
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${action}Response xmlns="${EC2_NAMESPACE}">${inside}</${action}Response>`
}

export function ec2Fault(code: string, message: string, requestId: string): string {
  const errors = element('Errors', { Error: { Code: code, Message: message } }, 'item')
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Response>${errors}<RequestID>${requestId}</RequestID></Response>`
}

export interface QueryWords {
  namespace: string
  action: string
  requestId: string
}

export function queryAnswer({ namespace, action, requestId }: QueryWords, fields: Xml): string {
  const result = element(`${action}Result`, fields, 'member')
  const metadata = element('ResponseMetadata', { RequestId: requestId }, 'member')
  return `<${action}Response xmlns="${namespace}">${result}${metadata}</${action}Response>`
}

export function queryFault(
  namespace: string,
  error: { code: string; message: string; status: number },
  requestId: string,
): string {
  const type = error.status >= 500 ? 'Receiver' : 'Sender'
  const inside = element('Error', { Type: type, Code: error.code, Message: error.message }, 'member')
  return `<ErrorResponse xmlns="${namespace}">${inside}<RequestId>${requestId}</RequestId></ErrorResponse>`
}
