/**
 * A text without the given characters at its end, such as the slashes of a URL. The expression `/\/+$/` would take quadratic time: it begins
 * anew at each of many slashes.
 */
export function withoutEnd(text: string, characters: string): string {
  let end = text.length
  while (end > 0 && characters.includes(text[end - 1]!)) end -= 1
  return text.slice(0, end)
}
