// Makes the built-in objects of a new engine safe to share between documents. Evaluated before any source of a view
// is; gives functions that lock them and that put back what a map function overwrote.
(function () {
  'use strict';
  const { apply, ownKeys } = Reflect;
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Object;

  // The engine looks at its clock between steps of a script. Some of its own functions are one step whatever
  // they are given; these refuse what would keep them busy for minutes.
  const ELEMENTS_MAX = 1 << 22;
  const COMPARISONS_MAX = 2 ** 31;
  const MARKS_MAX = 1 << 15;

  function refuseLong(list, given) {
    for (const each of [list, ...given]) {
      if (each !== null && typeof each === 'object' && each.length > ELEMENTS_MAX) {
        throw new RangeError(`a list of ${each.length} elements is too long for this`);
      }
    }
  }

  function refuseLongSearch(text, [sought]) {
    if (typeof text === 'string' && typeof sought === 'string'
        && text.length * sought.length > COMPARISONS_MAX) {
      throw new RangeError('the texts are too long to look for one in the other');
    }
  }

  // Marks that follow each other are put in order by insertion, which is quadratic in their number.
  function refuseManyMarks(text) {
    if (typeof text === 'string' && text.length > MARKS_MAX && /\p{M}{1000}/u.test(text)) {
      throw new RangeError('the text has too many accents on one letter');
    }
  }

  function guard(object, names, refuse) {
    for (const name of names) {
      const native = object[name];
      const guarded = { [name](...given) {
        refuse(this, given);
        return apply(native, this, given);
      } }[name];
      defineProperty(guarded, 'length', { value: native.length });
      object[name] = guarded;
    }
  }

  guard(Array.prototype, ['concat', 'copyWithin', 'flat', 'flatMap', 'join', 'reverse', 'shift', 'slice', 'sort',
    'splice', 'toLocaleString', 'toReversed', 'toSorted', 'toSpliced', 'unshift', 'with'], refuseLong);
  guard(JSON, ['stringify'], refuseLong);
  guard(String.prototype, ['includes', 'indexOf', 'replace', 'replaceAll', 'split'], refuseLongSearch);
  guard(String.prototype, ['localeCompare', 'normalize'], refuseManyMarks);
  guard(String, ['raw'], (_, [template]) => refuseLong(template?.raw, []));
  // These work through any iterator without a step in between.
  for (const name of ['drop', 'includes', 'join']) delete Iterator.prototype[name];
  for (const name of ownKeys(Set.prototype)) {
    if (/^(is.*Of|isDisjointFrom|union|intersection|difference|symmetricDifference)$/.test(String(name))) {
      delete Set.prototype[name];
    }
  }
  // The engine calls this for every error, also for the one that ends a script, and then forgets that one.
  defineProperty(Error, 'prepareStackTrace', { value: undefined, writable: false, configurable: false });

  // Assigning to these happens by mistake (`sum = 0` without `var`) or for convenience (a list as a dictionary:
  // an inherited property that cannot be assigned to could not be hidden by one's own), so it works until the
  // function returns.
  const assignable = new Set([globalThis, Object.prototype, Array.prototype, Error.prototype]);

  function mayBeAssigned(object, key) {
    return assignable.has(object) && typeof key === 'string' && (object !== globalThis || /^[a-z]/.test(key));
  }

  // What is there can neither be redefined nor removed, and but for the assignable it cannot be assigned to.
  function lock(root) {
    const seen = new Set();
    const waiting = [root, (function* () {})(), (async () => {})(), [].values(), new Map().entries(),
      new Set().values(), ''[Symbol.iterator](), 'x'.matchAll(/x/g)];
    while (waiting.length > 0) {
      const object = waiting.pop();
      if (object === null || typeof object !== 'object' && typeof object !== 'function' || seen.has(object)) {
        continue;
      }
      seen.add(object);
      waiting.push(getPrototypeOf(object));
      for (const key of ownKeys(object)) {
        if (typeof object === 'function' && (key === 'name' || key === 'length')) continue;
        const property = getOwnPropertyDescriptor(object, key);
        waiting.push(property.value, property.get, property.set);
        if (!property.configurable) continue;
        defineProperty(object, key, property.get || property.set
          ? { configurable: false }
          : { configurable: false, writable: property.writable && mayBeAssigned(object, key) });
      }
    }
  }

  // One comparison for each property, without a loop: this runs after each call of a map function.
  function restorer() {
    const objects = [], values = [], lines = [];
    for (const object of assignable) {
      const place = objects.push(object) - 1;
      for (const key of ownKeys(object)) {
        const property = getOwnPropertyDescriptor(object, key);
        if (!property.writable) continue;
        lines.push(`if (o${place}.${key} !== v${values.length}) o${place}.${key} = v${values.length};`);
        values.push(property.value);
      }
    }
    const names = [...objects.map((_, place) => `o${place}`), ...values.map((_, place) => `v${place}`)];
    return Function(...names, `'use strict'; return function () { ${lines.join('\n')} };`)(...objects, ...values);
  }

  return { lock, restorer };
})()
