/** The Region of a zone (`us-east-1a`), a Local Zone (`us-west-2-lax-1a`) or a Region; `undefined` for any other text. */
export function regionOfPlace(place: string): string | undefined {
  return /^[a-z]{2,4}(?:-[a-z]+)+-\d+/.exec(place)?.[0]
}
